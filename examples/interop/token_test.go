package interop_test

import (
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// tokenHolder is a side that acquires a fenced lock and returns its token.
type tokenHolder struct {
	name string
	// take acquires the lock with a lease; 0: with a watchdog.
	take func(t *testing.T, lease time.Duration) (token int64, free func(t *testing.T))
}

// tokensIncrease acquires a lock repeatedly, from both sides and after every way in which a hold ends. Each token is larger
// than the previous one.
func tokensIncrease(t *testing.T, s *site, _ kind) {
	name := unique("fenced")
	locks := s.locks(t)
	java, own := javaTokens(s, name), goTokens(locks, name)
	const brief = 100 * time.Millisecond
	every := []tokenHolder{java, own, own, java} // so that every ordered pair of sides occurs
	steps := []struct {
		how   string
		who   []tokenHolder
		lease time.Duration
		ends  func(t *testing.T, free func(t *testing.T))
	}{
		{how: "released", who: every, ends: func(t *testing.T, free func(t *testing.T)) { free(t) }},
		{how: "expired", who: every, lease: brief, ends: func(t *testing.T, _ func(t *testing.T)) {
			eventually(t, "the end of the lease", func() bool { return s.master(name).Exists(t.Context(), name).Val() == 0 })
		}},
		{how: "forced away by Go", who: every, ends: func(t *testing.T, _ func(t *testing.T)) {
			if was, err := locks.FencedLock(name).ForceRelease(t.Context()); !was || err != nil {
				t.Errorf("ForceRelease: got %t, %v", was, err)
			}
		}},
		{how: "forced away by Java", who: every, ends: func(t *testing.T, _ func(t *testing.T)) {
			if !s.java.Thread(t).Lock(interop.Fenced, name).ForceUnlock().True() {
				t.Error("forceUnlock: got false")
			}
		}},
		// Go draws the next token, because Redisson would start again at 1 without the counter.
		{how: "without its counter afterwards", who: []tokenHolder{own}, ends: func(t *testing.T, free func(t *testing.T)) {
			if n := s.master(name).Del(t.Context(), prefixed("redisson_lock_token", name)).Val(); n != 1 {
				t.Errorf("%d counters were deleted, want 1", n)
			}
			free(t)
		}},
		{how: "released again", who: []tokenHolder{own, java, java}, ends: func(t *testing.T, free func(t *testing.T)) { free(t) }},
	}
	last := int64(0)
	for round := range 2 {
		for _, step := range steps {
			for _, holder := range step.who {
				token, free := holder.take(t, step.lease)
				if token <= last {
					t.Errorf("round %d, %s, to be %s: got token %d after %d", round+1, holder.name, step.how, token, last)
				}
				last = token
				step.ends(t, free)
			}
		}
		for _, token := range handOverTokens(t, java, own) {
			if token <= last {
				t.Errorf("round %d, handed over: got token %d after %d", round+1, token, last)
			}
			last = token
		}
	}
	if got := s.java.Thread(t).Lock(interop.Fenced, name).Start("getToken").Number(); got != last {
		t.Errorf("getToken of Java: got %d, want %d, the last one", got, last)
	}
}

func javaTokens(s *site, name string) tokenHolder {
	return tokenHolder{"Java", func(t *testing.T, lease time.Duration) (int64, func(t *testing.T)) {
		t.Helper()
		lock := s.java.Thread(t).Lock(interop.Fenced, name)
		options := []string{"wait", "20000"}
		if lease > 0 {
			options = append(options, "lease", interop.Millis(lease))
		}
		return lock.Start("tryLockAndGetToken", options...).Number(), func(t *testing.T) { lock.Unlock().OK() }
	}}
}

func goTokens(locks *core.Client, name string) tokenHolder {
	return tokenHolder{"Go", func(t *testing.T, lease time.Duration) (int64, func(t *testing.T)) {
		t.Helper()
		options := []core.AcquireOption{core.WaitTime(20 * time.Second)}
		if lease > 0 {
			options = append(options, core.LeaseTime(lease))
		}
		_, hold, err := locks.FencedLock(name).Acquire(t.Context(), options...)
		if err != nil {
			t.Fatal(err)
		}
		return hold.Token(), func(t *testing.T) {
			if err := hold.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}}
}

// handOverTokens returns the tokens of callers of both sides that wait at the same time, in the order in which they get the
// lock. The callers of Go share a client and pass the lock on.
func handOverTokens(t *testing.T, sides ...tokenHolder) (tokens []int64) {
	t.Helper()
	const callers = 4 // of each
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, side := range sides {
		for range callers {
			running.Go(func() {
				token, free := side.take(t, 0)
				mu.Lock()
				tokens = append(tokens, token) // recorded before another caller gets the lock
				mu.Unlock()
				free(t)
			})
		}
	}
	running.Wait()
	if len(tokens) != callers*len(sides) {
		t.Fatalf("%d of %d callers got the lock", len(tokens), callers*len(sides))
	}
	return tokens
}
