package clusters_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// Environment variables of a longer run of failovers.
const (
	failoversEnv = "INTERLOCK_FAILOVERS"      // how many, in place of a few
	acksEnv      = "INTERLOCK_FAILOVERS_ACKS" // all, majority or none, separated by commas
)

// If all replicas have to acknowledge, no lock has two holders in any of a few failovers. With fewer acknowledgements
// the test logs figures, but asserts nothing.
func TestFailovers_NoTwoHolders(t *testing.T) {
	t.Parallel()
	failovers, modes := 3, "all"
	if testing.Short() {
		failovers = 1
	}
	if n, err := strconv.Atoi(os.Getenv(failoversEnv)); err == nil {
		failovers = n
	}
	if said := os.Getenv(acksEnv); said != "" {
		modes = said
	}
	for mode := range strings.SplitSeq(modes, ",") {
		acks, known := map[string]core.Acks{"all": core.AcksAll, "majority": core.AcksMajority, "none": core.AcksNone}[mode]
		if !known {
			t.Fatalf("%s=%s: want all, majority, none", acksEnv, modes)
		}
		t.Run(mode, func(t *testing.T) {
			f := newFailovers(t, acks)
			for range failovers {
				f.next()
			}
			f.end()
			t.Logf("%d failovers, %d of them with two holders of a lock; %d locks with two holders of %d acquisitions, %d shortfalls",
				failovers, f.bad, len(f.book.twice), f.book.taken.Load(), f.book.short.Load())
			if acks == core.AcksAll && len(f.book.twice) > 0 {
				t.Errorf("two holders at the same time:\n%s", strings.Join(f.book.twice, "\n"))
			}
		})
	}
}

// failovers kills masters with two replicas while clients contend for locks. Before the master dies, each replica stops
// for a moment now and then, so that it lacks the writes of milliseconds, not only of microseconds.
type failovers struct {
	t    *testing.T
	r    *redisserver.Replicated
	book book
	stop context.CancelFunc
	all  sync.WaitGroup
	bad  int // failovers with two holders
}

// The numbers of locks, and of clients that contend for each.
const (
	contendedLocks  = 24
	contendedByEach = 3
	failoverLease   = 5 * time.Second // longer than a failover, so that holds outlive it
	failoverAcks    = 400 * time.Millisecond
)

func newFailovers(t *testing.T, acks core.Acks) *failovers {
	t.Helper()
	f := &failovers{t: t, r: redisserver.StartWatched(t, 2), book: book{has: make(map[string]context.Context)}}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.Background())
	t.Cleanup(f.end)
	for range contendedByEach {
		locks := locktest.NewClient(t, f.r.Client(), core.WithWatchdog(failoverLease), core.WithBackendTimeout(500*time.Millisecond),
			core.WithReplicaAcks(acks, failoverAcks), core.WithObserver(&core.Observer{
				Backend: func(context.Context, core.BackendChange) {}, // keeps outages out of the log
			}))
		for i := range contendedLocks {
			f.all.Go(func() { f.book.contend(ctx, locks.Lock("k"+strconv.Itoa(i))) })
		}
	}
	return f
}

func (f *failovers) end() {
	f.stop()
	f.all.Wait()
}

// next kills the master at a random time and returns when locks can be acquired again.
func (f *failovers) next() {
	f.t.Helper()
	before := f.book.taken.Load()
	locktest.Eventually(f.t, "locks are acquired", func() bool { return f.book.taken.Load() > before+contendedLocks })
	twice := f.book.count()
	pause(time.Second)
	for _, s := range f.r.Replicas {
		if rand.IntN(2) == 0 {
			s.Stop()
		}
	}
	pause(150 * time.Millisecond)
	old := f.r.Master
	old.Kill()
	for _, s := range f.r.Replicas {
		s.Continue()
	}
	f.r.AwaitPromotion()
	pause(time.Second) // another client may take a lock that the new master does not have
	f.r.Rejoin(old)
	if f.book.count() > twice {
		f.bad++
	}
}

// pause waits for a random time up to d.
func pause(d time.Duration) { <-time.NewTimer(rand.N(d)).C }

// book records the holders of all locks.
type book struct {
	mu    sync.Mutex
	has   map[string]context.Context
	twice []string

	taken, short atomic.Int64
}

// contend takes a lock again and again, mostly for a moment and sometimes for longer than a failover.
func (b *book) contend(ctx context.Context, lock core.Lock) {
	for ctx.Err() == nil {
		held, hold, err := lock.Acquire(ctx, core.WaitTime(3*time.Second))
		switch {
		case err == nil:
			b.enter(held, hold)
			b.hold(held)
			b.leave(held, hold)
			_ = hold.Release(context.Background())
		case ctx.Err() != nil, errors.Is(err, core.ErrClosed):
		case errors.Is(err, core.ErrUnavailable):
			if _, short := errors.AsType[*core.ReplicationError](err); short {
				b.short.Add(1)
			}
			pause(20 * time.Millisecond)
		case !errors.Is(err, core.ErrNotAcquired):
			slog.Error("an unexpected end of an acquisition", "error", err)
		}
	}
}

func (b *book) hold(held context.Context) {
	most := 20 * time.Millisecond
	if rand.IntN(10) == 0 {
		most = 4 * time.Second
	}
	timer := time.NewTimer(rand.N(most))
	defer timer.Stop()
	select {
	case <-held.Done():
	case <-timer.C:
	}
}

// enter records a holder. If the hold before it has not ended, the lock has two holders.
func (b *book) enter(held context.Context, hold *core.Hold) {
	b.taken.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if before := b.has[hold.Key()]; before != nil && before.Err() == nil && held.Err() == nil {
		b.twice = append(b.twice, fmt.Sprintf("%s at %s", hold.Key(), time.Now().Format(time.TimeOnly)))
	}
	b.has[hold.Key()] = held
}

func (b *book) leave(held context.Context, hold *core.Hold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.has[hold.Key()] == held {
		delete(b.has, hold.Key())
	}
}

func (b *book) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.twice)
}
