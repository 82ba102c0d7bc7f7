package kinds_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// locksWithoutChannels returns a client whose ACL has no channels.
func locksWithoutChannels(b *locktest.Redis) *core.Client {
	b.T.Helper()
	locktest.Must(b.T, b.Do(b.T.Context(), "acl", "setuser", "silent", "on", ">secret", "~*", "+@all", "resetchannels").Err())
	return locktest.NewClient(b.T, b.Connect(func(o *redis.Options) { o.Username, o.Password = "silent", "secret" }), locktest.Patient)
}

// eachWithMessages runs a test on a separate server for each kind whose waiters have messages, except for the named
// kinds.
func eachWithMessages(t *testing.T, body func(t *testing.T, b *locktest.Redis, m locktest.Kind), but ...string) {
	t.Helper()
	for _, m := range locktest.KindsOnOneServer() {
		if m.Channel == nil || slices.Contains(but, m.Name) {
			continue
		}
		locktest.Parallel(t, m.Name, func(t *testing.T) {
			body(t, locktest.Real(t), m)
		})
	}
}

// A waiter whose ACL has no channels finds the free lock by polling. So does a waiter behind a holder with such an
// ACL, which cannot send messages.
func TestKinds_ACLWithoutTheChannels(t *testing.T) {
	t.Parallel()
	eachWithMessages(t, func(t *testing.T, b *locktest.Redis, m locktest.Kind) {
		silent, listening := locksWithoutChannels(b), b.Locks(locktest.Patient)
		for _, tt := range []struct {
			who            string
			holder, waiter *core.Client
		}{{"waiter", listening, silent}, {"holder", silent, listening}, {"both", silent, silent}} {
			theirs, err := m.Take(t.Context(), tt.holder, "k")
			locktest.Must(t, err)
			got := make(chan error, 1)
			go func() {
				mine, err := m.Want(t.Context(), tt.waiter, "k")
				if err == nil {
					err = mine.GiveBack()
				}
				got <- err
			}()
			locktest.AwaitWaiters(t, tt.waiter, 1)
			if tt.waiter == listening {
				locktest.Eventually(t, "subscribed", func() bool { return len(b.PubSubChannels(t.Context(), m.Channel("k")+"*").Val()) > 0 })
			}
			given := time.Now()
			locktest.Must(t, theirs.GiveBack())
			if err := <-got; err != nil {
				t.Errorf("%s: %v", tt.who, err)
			}
			t.Logf("%s: after %s", tt.who, time.Since(given))
		}
	})
}

// A waiter whose ACL has no channels gets its turn in bounded time beside busy callers, even for a fair lock.
func TestKinds_ACLWithoutTheChannelsBesideBusyOnes(t *testing.T) {
	t.Parallel()
	eachWithMessages(t, func(t *testing.T, b *locktest.Redis, m locktest.Kind) {
		silent, busy := locksWithoutChannels(b), b.Locks(locktest.Patient)
		ctx, cancel := context.WithCancel(t.Context())
		turns, ended := busyWith(ctx, t, m, busy)
		locktest.Eventually(t, "turns of the busy callers", func() bool { return turns.Load() > 8 })
		for range 4 {
			start := time.Now()
			turns.Store(0)
			within, stop := context.WithTimeout(t.Context(), locktest.Measured(20*time.Second))
			taken, err := m.Want(within, silent, "k")
			if err != nil {
				t.Errorf("no turn in %s: %v", time.Since(start), err)
				stop()
				break
			}
			t.Logf("a turn after %s and %d of theirs", time.Since(start), turns.Load())
			locktest.Must(t, taken.GiveBack())
			stop()
			<-time.NewTimer(10 * time.Millisecond).C
		}
		cancel()
		ended.Wait()
	}, "latch") // waiters of a latch have no turns
}

// A waiter of a fair lock without messages keeps its place. No later waiter overtakes it, and the lock is free for at
// most 0.5 s until it attempts.
func TestFair_SilentWaiterKeepsItsPlace(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		fair := locktest.KindsOnOneServer()[slices.IndexFunc(locktest.KindsOnOneServer(), func(m locktest.Kind) bool { return m.Name == "fair" })]
		silent := b.WithoutMessages()
		ctx, cancel := context.WithCancel(t.Context())
		turns, ended := busyWith(ctx, t, fair, b.Locks())
		locktest.Pass(time.Second)
		for range 20 {
			start := time.Now()
			turns.Store(0)
			within, stop := context.WithTimeout(t.Context(), 5*time.Second)
			taken, err := fair.Want(within, silent, "k")
			if took, n := time.Since(start), turns.Load(); took > 600*time.Millisecond || n > 8 {
				t.Errorf("a turn after %s and %d of eight others", took, n)
			}
			if err != nil {
				t.Errorf("no turn: %v", err)
			} else {
				locktest.Must(t, taken.GiveBack())
			}
			stop()
			locktest.Pass(10 * time.Millisecond)
		}
		cancel()
		ended.Wait()
	})
}

// busyWith starts eight callers that take a lock of a kind again and again, for 5 ms each.
func busyWith(ctx context.Context, t *testing.T, m locktest.Kind, locks *core.Client) (turns *atomic.Int64, ended *sync.WaitGroup) {
	turns, ended = new(atomic.Int64), new(sync.WaitGroup)
	for range 8 {
		ended.Go(func() {
			for ctx.Err() == nil {
				taken, err := m.Take(ctx, locks, "k")
				if err != nil {
					wait(ctx, time.Millisecond) // without this pause, failing at once would stop the time of a bubble
					continue
				}
				turns.Add(1)
				<-time.NewTimer(5 * time.Millisecond).C
				locktest.WantOK(t, taken.GiveBack())
			}
		})
	}
	return turns, ended
}
