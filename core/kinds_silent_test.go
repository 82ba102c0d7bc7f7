package core_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

// deafLocks makes a client whose ACL has none of the channels.
func (b *bed) deafLocks() *core.Client {
	b.t.Helper()
	must(b.t, b.Do(b.t.Context(), "acl", "setuser", "deaf", "on", ">secret", "~*", "+@all", "resetchannels").Err())
	return locksOn(b.t, b.connect(func(o *redis.Options) { o.Username, o.Password = "deaf", "secret" }), patient)
}

// eachHeard runs a test on a server of its own for each kind whose waiters have messages, but for
// those named.
func eachHeard(t *testing.T, body func(t *testing.T, b *bed, m member), but ...string) {
	t.Helper()
	for _, m := range family() {
		if m.channel == nil || slices.Contains(but, m.kind) {
			continue
		}
		parallel(t, m.kind, func(t *testing.T) {
			body(t, serverBed(t), m)
		})
	}
}

// A waiter of each kind whose ACL has none of the channels finds by polling what it waits for, and
// so does one behind a holder with such an ACL, who can notify nobody.
func TestKinds_ACLWithoutTheChannels(t *testing.T) {
	t.Parallel()
	eachHeard(t, func(t *testing.T, b *bed, m member) {
		deaf, hearing := b.deafLocks(), b.locks(patient)
		for _, tt := range []struct {
			who            string
			holder, waiter *core.Client
		}{{"waiter", hearing, deaf}, {"holder", deaf, hearing}, {"both", deaf, deaf}} {
			theirs, err := m.have(t.Context(), tt.holder, "k")
			must(t, err)
			got := make(chan error, 1)
			go func() {
				mine, err := m.want(t.Context(), tt.waiter, "k")
				if err == nil {
					err = mine.giveBack()
				}
				got <- err
			}()
			waiters(t, tt.waiter, 1)
			if tt.waiter == hearing {
				eventually(t, "subscribed", func() bool { return len(b.PubSubChannels(t.Context(), m.channel("k")+"*").Val()) > 0 })
			}
			given := time.Now()
			must(t, theirs.giveBack())
			if err := <-got; err != nil {
				t.Errorf("%s: %v", tt.who, err)
			}
			t.Logf("%s: after %s", tt.who, time.Since(given))
		}
	})
}

// Beside those who are busy it has its turn in bounded time, of a fair lock too.
func TestKinds_ACLWithoutTheChannelsBesideBusyOnes(t *testing.T) {
	t.Parallel()
	eachHeard(t, func(t *testing.T, b *bed, m member) {
		deaf, busy := b.deafLocks(), b.locks(patient)
		ctx, cancel := context.WithCancel(t.Context())
		turns, ended := busyWith(ctx, t, m, busy)
		eventually(t, "the others busy", func() bool { return turns.Load() > 8 })
		for range 4 {
			start := time.Now()
			turns.Store(0)
			within, stop := context.WithTimeout(t.Context(), measured(20*time.Second))
			had, err := m.want(within, deaf, "k")
			if err != nil {
				t.Errorf("no turn in %s: %v", time.Since(start), err)
				stop()
				break
			}
			t.Logf("a turn after %s and %d of theirs", time.Since(start), turns.Load())
			must(t, had.giveBack())
			stop()
			<-time.NewTimer(10 * time.Millisecond).C
		}
		cancel()
		ended.Wait()
	}, "latch") // who waits for one has no turns
}

// A waiter of a fair lock that hears nothing keeps its place: nobody who came later is before it,
// and the lock is free for 0.5 s at most until it looks.
func TestFair_WithoutMessagesItKeepsItsPlace(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		fair := family()[slices.IndexFunc(family(), func(m member) bool { return m.kind == "fair" })]
		silent := b.silentLocks()
		ctx, cancel := context.WithCancel(t.Context())
		turns, ended := busyWith(ctx, t, fair, b.locks())
		pass(time.Second)
		for range 20 {
			start := time.Now()
			turns.Store(0)
			within, stop := context.WithTimeout(t.Context(), 5*time.Second)
			had, err := fair.want(within, silent, "k")
			if took, n := time.Since(start), turns.Load(); took > 600*time.Millisecond || n > 8 {
				t.Errorf("a turn after %s and %d of eight others", took, n)
			}
			if err != nil {
				t.Errorf("no turn: %v", err)
			} else {
				must(t, had.giveBack())
			}
			stop()
			pass(10 * time.Millisecond)
		}
		cancel()
		ended.Wait()
	})
}

// busyWith has eight callers have a kind again and again, for 5 ms each.
func busyWith(ctx context.Context, t *testing.T, m member, locks *core.Client) (turns *atomic.Int64, ended *sync.WaitGroup) {
	turns, ended = new(atomic.Int64), new(sync.WaitGroup)
	for range 8 {
		ended.Go(func() {
			for ctx.Err() == nil {
				had, err := m.have(ctx, locks, "k")
				if err != nil {
					wait(ctx, time.Millisecond) // where it fails at once the time of a bubble would stand still
					continue
				}
				turns.Add(1)
				<-time.NewTimer(5 * time.Millisecond).C
				wantOK(t, had.giveBack())
			}
		})
	}
	return turns, ended
}
