package locktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// Must ends the test if err is not nil.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantOK fails the test if err is not nil.
func WantOK(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// WantSame compares two values.
func WantSame[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// WantGot returns a function that compares the result of a call and wants its error to be nil.
func WantGot[T comparable](t *testing.T, what string, want T) func(got T, err error) {
	t.Helper()
	return func(got T, err error) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
		}
	}
}

// WantSoon checks that at most bound has passed since start. The format has one verb, for the elapsed time.
func WantSoon(t *testing.T, format string, start time.Time, bound time.Duration) {
	t.Helper()
	if took := time.Since(start); took > bound {
		t.Errorf(format+", want at most %s", took, bound)
	}
}

// WantAtMost checks that a call took at most bound of real time. It allows for Slack.
func WantAtMost(t *testing.T, what string, took, bound time.Duration) {
	t.Helper()
	if took > Measured(bound+Slack) {
		t.Errorf("%s took %s, want at most %s", what, took, bound)
	}
}

// WantErr checks that err matches every sentinel, and that each line of the message contains the prefix of the package
// at most once.
func WantErr(t *testing.T, err error, sentinels ...error) {
	t.Helper()
	for line := range strings.Lines(fmt.Sprint(err)) {
		if strings.Count(line, "core: ") > 1 {
			t.Errorf("the prefix of the package appears twice: %s", line)
		}
	}
	for _, want := range sentinels {
		if !errors.Is(err, want) {
			t.Errorf("got %v, want a match of %q", err, want)
		}
	}
}

// WantOnly checks that err matches one sentinel and none of the others.
func WantOnly(t *testing.T, err, want error, others ...error) {
	t.Helper()
	WantErr(t, err, want)
	for _, other := range others {
		if errors.Is(err, other) {
			t.Errorf("%v matches %q too", err, other)
		}
	}
}

// Outcomes returns the sentinels of package core. An error matches exactly one of them, see WantOutcome.
func Outcomes() []error {
	return []error{
		core.ErrNotAcquired, core.ErrUnavailable, core.ErrLost, core.ErrNotHeld, core.ErrTooManyWaiters, core.ErrClosed, core.ErrInvalid,
	}
}

// WantOutcome checks that err matches one of Outcomes and none of the others. ErrLost matches ErrNotHeld by definition.
func WantOutcome(t *testing.T, what string, err, want error) {
	t.Helper()
	for _, s := range Outcomes() {
		matches := errors.Is(err, s)
		if should := s == want || want == core.ErrLost && s == core.ErrNotHeld; matches != should { //nolint:errorlint // sentinels themselves
			t.Errorf("%s: %v matches %q: %t, want %t", what, err, s, matches, should)
		}
	}
}

// NotAcquired returns the *core.NotAcquiredError in err.
func NotAcquired(t *testing.T, err error) *core.NotAcquiredError {
	t.Helper()
	var e *core.NotAcquiredError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *NotAcquiredError", err)
	}
	return e
}

// WantShort checks that err reports that too few replicas acknowledged an acquisition.
func WantShort(t *testing.T, err error, wanted, acknowledged int) {
	t.Helper()
	WantErr(t, err, core.ErrUnavailable)
	short, ok := errors.AsType[*core.ReplicationError](err)
	if !ok {
		t.Fatalf("got %v, want a *ReplicationError", err)
	}
	if short.Wanted != wanted || short.Acknowledged != acknowledged {
		t.Errorf("wanted %d, acknowledged %d, want %d and %d: %v", short.Wanted, short.Acknowledged, wanted, acknowledged, err)
	}
}

// WantEnded checks that ctx is done with cause.
func WantEnded(t *testing.T, ctx context.Context, cause error) {
	t.Helper()
	if ctx.Err() == nil {
		t.Errorf("the context has not ended, want cause %q", cause)
		return
	}
	WantErr(t, context.Cause(ctx), cause)
}

// WantAlive checks that ctx is not done.
func WantAlive(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := ctx.Err(); err != nil {
		t.Errorf("the context has ended: %v, cause %v", err, context.Cause(ctx))
	}
}

// AwaitEnd waits until ctx is done.
func AwaitEnd(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(HangTimeout):
		t.Fatal("the context does not end")
	}
}

// WantHolders compares the hash of a lock.
func (b *Redis) WantHolders(key string, want map[string]string) {
	b.T.Helper()
	if got := b.HGetAll(context.Background(), key).Val(); !maps.Equal(got, want) {
		b.T.Errorf("HGETALL %s: got %v, want %v", key, got, want)
	}
}

// WantHolder checks that a lock has one holder, which has not re-entered it.
func (b *Redis) WantHolder(key, field string) {
	b.T.Helper()
	b.WantHolders(key, map[string]string{field: "1"})
}

// WantCount checks that a hold is the only holder of its lock, with this count.
func (b *Redis) WantCount(h *core.Hold, count string) {
	b.T.Helper()
	b.WantHolders(h.Key(), map[string]string{h.Field(): count})
}

// WantInside compares the hash of a read-write lock that the writer has re-entered for reading. It ignores the end of
// the writer's lease.
func (b *Redis) WantInside(key string, want map[string]string) {
	b.T.Helper()
	got := b.HGetAll(context.Background(), key).Val()
	delete(got, "interlock_until")
	if !maps.Equal(got, want) {
		b.T.Errorf("HGETALL %s: got %v, want %v", key, got, want)
	}
}

// WantGone checks that keys do not exist.
func (b *Redis) WantGone(keys ...string) {
	b.T.Helper()
	for _, key := range keys {
		if b.Exists(context.Background(), key).Val() != 0 {
			b.T.Errorf("%s is still there: %v", key, b.HGetAll(context.Background(), key).Val())
		}
	}
}

// WantFreed checks that a key is gone within a second.
func (b *Redis) WantFreed(key string) {
	b.T.Helper()
	WithinASecond(b.T, key+" gone", func() bool { return !b.Has(key) })
}

// WantReaders waits up to a second for these holders of a read-write lock, and for as many timeout keys as the readers
// have holds. The client clears up abandoned attempts within that second.
func (b *Redis) WantReaders(key string, want map[string]int) {
	b.T.Helper()
	WithinASecond(b.T, fmt.Sprintf("redis has %v", want), func() bool {
		hash := b.HGetAll(context.Background(), key).Val()
		if hash["mode"] == "write" && len(want) > 1 {
			delete(hash, "interlock_until")
		}
		holds, keys := 0, 0 // of the readers
		for field, count := range want {
			if hash[field] != strconv.Itoa(count) {
				return false
			}
			for n := 1; n <= count; n++ {
				keys += int(b.Exists(context.Background(), ReaderTimeoutOf(key, field, strconv.Itoa(n))).Val())
			}
			if !strings.HasSuffix(field, ":write") {
				holds += count
			}
		}
		all := b.Keys(context.Background(), ReaderTimeoutOf(key, "*", "*")).Val()
		return len(hash) == len(want)+1 && keys == holds && len(all) == holds
	})
}

// KeysBut returns the keys that exist, except for the named ones.
func (b *Redis) KeysBut(but ...string) []string {
	b.T.Helper()
	keys := b.Keys(context.Background(), "*").Val()
	return slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(but, key) })
}

// WantNothing checks that no keys exist, except for the named ones.
func (b *Redis) WantNothing(but ...string) {
	b.T.Helper()
	if keys := b.KeysBut(but...); len(keys) != 0 {
		b.T.Errorf("left behind: %q", keys)
	}
}

// WantTTL checks that the TTL of a key is in (low, high].
func (b *Redis) WantTTL(key string, low, high time.Duration) {
	b.T.Helper()
	if got := b.PTTL(context.Background(), key).Val(); got <= low || got > high {
		b.T.Errorf("PTTL %s: got %s, want over %s up to %s", key, got, low, high)
	}
}

// WantQueue checks that these fields wait for a fair lock, in this order, each with a deadline.
func (b *Redis) WantQueue(key string, want ...string) {
	b.T.Helper()
	if got := b.Queued(key); !slices.Equal(got, want) {
		b.T.Errorf("queue: got %v, want %v", got, want)
	}
	if n := b.ZCard(context.Background(), FairDeadlines(key)).Val(); n != int64(len(want)) {
		b.T.Errorf("%d deadlines, want %d", n, len(want))
	}
}

// WantNoQueue checks that a fair lock and its queue are gone within a second.
func (b *Redis) WantNoQueue(key string) {
	b.T.Helper()
	WithinASecond(b.T, "no waiter queued", func() bool {
		return b.Exists(context.Background(), key, FairQueue(key), FairDeadlines(key)).Val() == 0
	})
}

// WantHeldOn checks that a lock exists on this number of servers.
func WantHeldOn(t *testing.T, servers []*Redis, key string, want int) {
	t.Helper()
	if got := HeldOn(servers, key); got != want {
		t.Errorf("%s is on %d servers, want %d", key, got, want)
	}
}

// WantNowhere checks that a lock is gone from all servers within a second of the bubble.
func WantNowhere(t *testing.T, servers []*Redis, key string) {
	t.Helper()
	for range 100 {
		if HeldOn(servers, key) == 0 {
			return
		}
		Pass(10 * time.Millisecond)
	}
	t.Errorf("%s is still on %d servers", key, HeldOn(servers, key))
}
