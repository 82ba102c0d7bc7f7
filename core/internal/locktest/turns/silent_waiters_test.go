package turns_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// holders starts callers that take a lock again as soon as they have freed it, and hold it for a while.
func holders(ctx context.Context, locks *core.Client, n int, hold time.Duration, opts ...core.AcquireOption) (turns *atomic.Int64, ended *sync.WaitGroup) {
	turns, ended = new(atomic.Int64), new(sync.WaitGroup)
	for range n {
		ended.Go(func() {
			for ctx.Err() == nil {
				err := locks.Lock("k").Do(ctx, func(context.Context) error {
					turns.Add(1)
					if hold > 0 {
						<-time.NewTimer(hold).C
					}
					return nil
				}, opts...)
				if err != nil && !errors.Is(err, core.ErrNotAcquired) {
					return
				}
			}
		})
	}
	return turns, ended
}

// longestWait takes turns for a while and returns the longest wait.
func longestWait(t *testing.T, locks *core.Client, total time.Duration) (longest time.Duration, turns int) {
	t.Helper()
	for end := time.Now().Add(total); time.Now().Before(end); turns++ {
		start := time.Now()
		err := locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(20*time.Second))
		longest = max(longest, time.Since(start))
		if err != nil {
			t.Errorf("no turn in %s: %v", longest, err)
			return longest, turns
		}
		<-time.NewTimer(10 * time.Millisecond).C
	}
	return longest, turns
}

// A waiter without messages has its turn within two seconds beside busy callers. That costs the busy callers at most
// 5 % of the time.
func TestSilentWaiter_GetsItsTurnBesideBusyOnes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		processes int
		callers   int
		hold      time.Duration
	}{
		{"eight callers, 1ms", 1, 8, time.Millisecond},
		{"eight callers, 5ms", 1, 8, 5 * time.Millisecond},
		{"eight callers, 100ms", 1, 8, 100 * time.Millisecond},
		{"one caller that comes back at once, 5ms", 1, 1, 5 * time.Millisecond},
		{"three processes, 5ms", 3, 4, 5 * time.Millisecond},
		{"three processes, 30ms", 3, 4, 30 * time.Millisecond},
	} {
		locktest.ParallelBubble(t, tt.name, func(t *testing.T, b *locktest.Redis) {
			ctx, cancel := context.WithCancel(t.Context())
			var all []*sync.WaitGroup
			var turns []*atomic.Int64
			for range tt.processes {
				n, ended := holders(ctx, b.Locks(), tt.callers, tt.hold)
				all, turns = append(all, ended), append(turns, n)
			}
			locktest.Pass(time.Second)
			silent := b.WithoutMessages()
			total := time.Duration(thorough.Or(20, 8)) * time.Second
			longest, had := longestWait(t, silent, total)
			if longest > 2*time.Second {
				t.Errorf("the silent waiter was without a turn for %s, want at most 2s", longest)
			}
			cancel()
			var busy int64
			for i, ended := range all {
				ended.Wait()
				busy += turns[i].Load()
			}
			used := time.Duration(busy) * tt.hold
			t.Logf("%d turns, longest wait %s; the others used %.1f %% of the time", had, longest, 100*float64(used)/float64(total+time.Second))
			if used < total*94/100 {
				t.Errorf("the busy callers used %s of %s, want at least 94 %%", used, total)
			}
		})
	}
}

// If the only other client is the holder, a waiter without messages finds the free lock within 50 ms, and polls no more
// often.
func TestSilentWaiter_Polls(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		proxy.HoldRequest(faultproxy.Command("subscribe"))
		sent := proxy.Watch(locktest.Scripts)
		b.Take("k", locktest.Stranger, time.Hour)
		at := locktest.AcquiredAt(t, locks, "k")
		locktest.Pass(10 * time.Second)
		if n := sent.Hits(); n < 10*20 || n > 10*27 {
			t.Errorf("%d attempts in ten seconds, want 200 to 270", n)
		}
		b.Del(t.Context(), "k")
		deleted := time.Now()
		if took := (<-at).Sub(deleted); took > 50*time.Millisecond {
			t.Errorf("found after %s, want at most 50ms", took)
		}
	})
}

// While a process leaves the lock free for others, a caller whose wait or context ends during that pause still gets the
// free lock.
func TestSilentWaiter_ShortWaits(t *testing.T) {
	t.Parallel()
	for name, bound := range map[string]func(context.Context) (context.Context, context.CancelFunc, []core.AcquireOption){
		"wait time": func(ctx context.Context) (context.Context, context.CancelFunc, []core.AcquireOption) {
			return ctx, func() {}, []core.AcquireOption{core.WaitTime(20 * time.Millisecond)}
		},
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc, []core.AcquireOption) {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			return ctx, cancel, nil
		},
		"one attempt": func(ctx context.Context) (context.Context, context.CancelFunc, []core.AcquireOption) {
			return ctx, func() {}, []core.AcquireOption{core.WaitTime(0)}
		},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks := b.Locks()
			for range thorough.Or(2000, 500) {
				ctx, cancel, opts := bound(t.Context())
				_, hold, err := locks.Lock("k").Acquire(ctx, opts...)
				if err != nil {
					t.Fatalf("the caller did not get the free lock: %v", err)
				}
				<-time.NewTimer(5 * time.Millisecond).C
				locktest.MustRelease(t, hold)
				cancel()
			}
		})
	}
}

// Processes do not pause for a lock that is often free.
func TestSilentWaiter_LockThatIsOftenFree(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		for range 1000 {
			start := time.Now()
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			if took := time.Since(start); took > 0 {
				t.Fatalf("a free lock was acquired after %s, want at once", took)
			}
			<-time.NewTimer(5 * time.Millisecond).C
			locktest.MustRelease(t, hold)
			<-time.NewTimer(3 * time.Millisecond).C
		}
	})
}

// An ACL that refuses one channel does not affect others. When it allows the channel later, messages wake waiters
// again.
func TestSilentWaiter_OfAnACLWithoutTheChannel(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	acl := func(rules ...any) {
		t.Helper()
		locktest.Must(t, b.Do(t.Context(), append([]any{"acl", "setuser", "silent", "on", ">secret", "~*", "+@all"}, rules...)...).Err())
	}
	acl("resetchannels", "&*open*")
	locks := locktest.NewClient(t, b.Connect(func(o *redis.Options) { o.Username, o.Password = "silent", "secret" }), locktest.Patient)
	b.Take("open", locktest.Stranger, time.Minute)
	open := locktest.GoAcquire(t.Context(), locks.Lock("open"))
	b.AwaitListeners("open", 1)

	ctx, cancel := context.WithCancel(t.Context())
	_, ended := holders(ctx, b.Locks(locktest.Patient), 8, 5*time.Millisecond)
	longest, turns := longestWait(t, locks, 4*time.Second)
	cancel()
	ended.Wait()
	t.Logf("%d turns, longest wait %s", turns, longest)
	if longest > locktest.Measured(4*time.Second) {
		t.Errorf("the waiter was without a turn for %s", longest)
	}

	b.Take("later", locktest.Stranger, time.Minute)
	later := locktest.GoAcquire(t.Context(), locks.Lock("later"))
	locktest.Eventually(t, "the channel refused", func() bool { return refusesChannel(b, "later") })
	acl("&*")
	b.AwaitListeners("later", 1) // the client subscribes again
	for key, got := range map[string]<-chan locktest.Outcome{"later": later, "open": open} {
		b.Free(key)
		locktest.MustRelease(t, (<-got).Hold)
	}
}

// refusesChannel reports whether the ACL has refused the channel of key.
func refusesChannel(b *locktest.Redis, key string) bool {
	for _, entry := range b.ACLLog(context.Background(), 100).Val() {
		if entry.Reason == "channel" && entry.Object == locktest.ChannelOf(key) {
			return true
		}
	}
	return false
}
