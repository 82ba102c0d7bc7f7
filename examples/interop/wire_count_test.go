package interop_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/interop"
)

func semaphoreChannel(name string) string { return prefixed("redisson_sc", name) }

// latchChannel does not follow the rule for prefixes: it always has braces.
func latchChannel(name string) string { return "redisson_countdownlatch__channel__{" + name + "}" }

func permitLeases(name string) string { return suffixed(name, "timeout") }

// neverExpires is the deadline of a permit without a lease.
const neverExpires = 922337203685477

func named(name string, more ...string) interop.Args {
	args := interop.Args{"name": interop.Text(name)}
	for i := 0; i < len(more); i += 2 {
		args[more[i]] = more[i+1]
	}
	return args
}

// semaphoreCounts makes threads share permits without owners.
func semaphoreCounts(t *testing.T, s *site) {
	name := unique("semaphore")
	messages := s.messages(t, name, semaphoreChannel(name))
	one, two := s.java.Thread(t), s.java.Thread(t)
	if !one.Start("semaphore.trySetPermits", named(name, "permits", "3")).True() {
		t.Error("trySetPermits of a new semaphore: got false")
	}
	s.wantValue(t, name, "3")
	wantMessage(t, messages, "3")
	if one.Start("semaphore.trySetPermits", named(name, "permits", "5")).True() {
		t.Error("trySetPermits of an existing semaphore: got true")
	}
	one.Start("semaphore.acquire", named(name, "permits", "2")).OK()
	s.wantValue(t, name, "1")
	if two.Start("semaphore.tryAcquire", named(name, "permits", "2")).True() {
		t.Error("tryAcquire of 2 permits of 1: got true")
	}
	waits := two.Start("semaphore.acquire", named(name, "permits", "2"))
	eventually(t, "a thread to wait", func() bool { return s.listeners(t, name, semaphoreChannel(name)) == 2 })
	one.Start("semaphore.release", named(name, "permits", "1")).OK()
	wantMessage(t, messages, "2")
	waits.OK()
	s.wantValue(t, name, "0")
	two.Start("semaphore.addPermits", named(name, "permits", "4")).OK()
	if n := two.Start("semaphore.drainPermits", named(name)).Number(); n != 4 {
		t.Errorf("drainPermits: got %d, want 4", n)
	}
	s.wantValue(t, name, "0")
}

// permitsHaveIDs makes one thread acquire a permit and another one release it by its id, which has 16 bytes in Redis.
func permitsHaveIDs(t *testing.T, s *site) {
	name := unique("permits")
	one, two := s.java.Thread(t), s.java.Thread(t)
	one.Start("permits.trySetPermits", named(name, "permits", "2")).OK()
	forGood := one.Start("permits.acquire", named(name)).OK().Value
	leased := one.Start("permits.tryAcquire", named(name, "wait", "1000", "lease", "60000")).OK().Value
	s.wantValue(t, name, "0")
	if got := s.deadline(t, name, forGood); got != neverExpires {
		t.Errorf("deadline of a permit without a lease: got %.0f, want %d", got, int64(neverExpires))
	}
	if left := time.Until(time.UnixMilli(int64(s.deadline(t, name, leased)))); left < 30*time.Second || left > time.Minute {
		t.Errorf("deadline of a permit for a minute: in %s", left)
	}
	if id := two.Start("permits.tryAcquire", named(name)).OK().Value; id != "" {
		t.Errorf("tryAcquire of a semaphore without permits: got %q", id)
	}
	waits := two.Start("permits.acquire", named(name))
	eventually(t, "a thread to wait", func() bool { return s.listeners(t, name, semaphoreChannel(name)) == 1 })
	one.Start("permits.release", named(name, "id", forGood)).OK()
	next := waits.OK().Value
	one.Start("permits.release", named(name, "id", next)).OK()
	one.Start("permits.release", named(name, "id", leased)).OK()
	if one.Start("permits.tryRelease", named(name, "id", leased)).True() {
		t.Error("tryRelease of a permit that was released: got true")
	}
	s.wantValue(t, name, "2")
	s.wantGone(t, permitLeases(name))
}

// permitsExpire lets the lease of a permit expire. The next request for a permit gets it.
func permitsExpire(t *testing.T, s *site) {
	name := unique("permits")
	thread := s.java.Thread(t)
	thread.Start("permits.trySetPermits", named(name, "permits", "1")).OK()
	first := thread.Start("permits.tryAcquire", named(name, "lease", "300")).OK().Value
	second := thread.Start("permits.tryAcquire", named(name, "wait", "20000", "lease", "60000")).OK().Value
	if first == "" || second == "" || first == second {
		t.Fatalf("ids: got %q and %q, want two", first, second)
	}
	s.wantValue(t, name, "0")
	if !thread.Start("permits.updateLeaseTime", named(name, "id", second, "lease", "120000")).True() {
		t.Error("updateLeaseTime: got false")
	}
	if left := time.Until(time.UnixMilli(int64(s.deadline(t, name, second)))); left < time.Minute {
		t.Errorf("deadline of a permit with a new lease: in %s, want two minutes", left)
	}
}

// deadline returns the score of a permit, whose id is a text of 32 hexadecimal digits.
func (s *site) deadline(t *testing.T, name, id string) float64 {
	t.Helper()
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) != 16 {
		t.Fatalf("id %q: want 32 hexadecimal digits", id)
	}
	score, err := s.master(name).ZScore(t.Context(), permitLeases(name), string(raw)).Result()
	if err != nil {
		t.Fatalf("deadline of permit %s: %v", id, err)
	}
	return score
}

// latchOpens makes a thread wait until two others have counted down.
func latchOpens(t *testing.T, s *site) {
	name := unique("latch")
	messages := s.messages(t, name, latchChannel(name))
	one, two := s.java.Thread(t), s.java.Thread(t)
	if !one.Start("latch.trySetCount", named(name, "count", "2")).True() {
		t.Error("trySetCount of a new latch: got false")
	}
	wantMessage(t, messages, "1")
	s.wantValue(t, name, "2")
	if two.Start("latch.await", named(name, "wait", "50")).True() {
		t.Error("await of a closed latch: got true")
	}
	waits := two.Start("latch.await", named(name))
	one.Start("latch.countDown", named(name)).OK()
	s.wantValue(t, name, "1")
	select {
	case <-waits.Done():
		t.Error("the latch opened at the count 1")
	default:
	}
	one.Start("latch.countDown", named(name)).OK()
	wantMessage(t, messages, "0")
	if !waits.True() {
		t.Error("await of an open latch: got false")
	}
	s.wantGone(t, name)
}
