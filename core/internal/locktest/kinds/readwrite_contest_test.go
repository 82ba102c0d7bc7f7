package kinds_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// register records the holders of a read-write lock. It checks that while the context of a writer is alive, no other
// holder has a context that is alive.
type register struct {
	t *testing.T

	mu      sync.Mutex
	present map[*core.Hold]subject
	turns   map[string]int
	own     map[string][]int // the turns of each caller
	waits   map[string][]time.Duration
	fails   map[string]int
}

type subject struct {
	ctx    context.Context //nolint:containedctx // of the hold
	writes bool
}

func newRegister(t *testing.T) *register {
	t.Helper()
	return &register{t: t, present: map[*core.Hold]subject{}, turns: map[string]int{}, own: map[string][]int{}, waits: map[string][]time.Duration{}, fails: map[string]int{}}
}

func (r *register) enters(h *core.Hold, s subject, kind string, waited time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, o := range r.present {
		if (s.writes || o.writes) && o.ctx.Err() == nil && s.ctx.Err() == nil {
			r.t.Errorf("%s (writes %v) beside %s (writes %v)", h.Field(), s.writes, other.Field(), o.writes)
		}
	}
	r.present[h] = s
	r.turns[kind]++
	r.waits[kind] = append(r.waits[kind], waited)
}

func (r *register) leaves(h *core.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.present, h)
}

func (r *register) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrNotAcquired), errors.Is(err, core.ErrLost):
		r.fails[errors.Unwrap(err).Error()]++
	default:
		r.t.Error(err)
	}
}

// addTurns records the turns of a caller.
func (r *register) addTurns(kind string, turns int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own[kind] = append(r.own[kind], turns)
}

func (r *register) longest(kind string) time.Duration {
	if len(r.waits[kind]) == 0 {
		return 0
	}
	return slices.Max(r.waits[kind])
}

// contest is a number of processes with readers and writers of a lock.
type contest struct {
	processes        int
	readers, writers int // of each process
	hold, think      time.Duration
	lasts            time.Duration
	connect          func(process int) (*faultproxy.Proxy, redis.UniversalClient)
	faults           bool
	opts             []core.Option
}

func (c contest) play(t *testing.T) *register {
	t.Helper()
	r := newRegister(t)
	ctx, stop := context.WithTimeout(t.Context(), c.lasts)
	defer stop()
	var callers sync.WaitGroup
	for process := range c.processes {
		proxy, rdb := c.connect(process)
		locks := locktest.NewClient(t, rdb, c.opts...)
		if c.faults {
			callers.Go(func() { c.injectFaults(ctx, proxy) })
		}
		for i := range c.readers + c.writers {
			kind, lock := "read", locks.ReadLock("map")
			if i >= c.readers {
				kind, lock = "write", locks.WriteLock("map")
			}
			callers.Go(func() {
				turns := 0
				for ctx.Err() == nil {
					if c.turn(ctx, r, locks, kind, lock) {
						turns++
					}
					wait(ctx, rand.N(2*c.think+1))
				}
				r.addTurns(kind, turns)
			})
		}
	}
	callers.Wait()
	return r
}

// turn takes the lock once and reports whether it got the lock. Some holders re-enter, some writers read, and some
// writers go on as readers.
func (c contest) turn(ctx context.Context, r *register, locks *core.Client, kind string, lock core.Lock) bool {
	start := time.Now()
	held, hold, err := lock.Acquire(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.fail(err)
		}
		return false
	}
	r.enters(hold, subject{held, kind == "write"}, kind, time.Since(start))
	some := rand.N(8)
	if some == 0 {
		_ = lock.Do(held, func(context.Context) error { return nil })
	}
	wait(held, rand.N(2*c.hold+1))
	var reader *core.Hold
	if some == 1 && kind == "write" {
		if _, inner, err := locks.ReadLock("map").Acquire(held); err == nil {
			held, reader = inner.Handover()
		}
	}
	r.leaves(hold)
	if err := hold.Release(ctx); err != nil {
		r.fail(err)
	}
	if reader != nil {
		r.enters(reader, subject{held, false}, "read on", 0)
		wait(held, rand.N(2*c.hold+1))
		r.leaves(reader)
		if err := reader.Release(ctx); err != nil {
			r.fail(err)
		}
	}
	return true
}

// injectFaults loses one reply in a hundred, and cuts all connections now and then.
func (c contest) injectFaults(ctx context.Context, proxy *faultproxy.Proxy) {
	proxy.DropReply(faultproxy.All(locktest.Scripts, func([]string) bool { return rand.N(100) == 0 }))
	for wait(ctx, 200*time.Millisecond+rand.N(time.Second)); ctx.Err() == nil; wait(ctx, 200*time.Millisecond+rand.N(time.Second)) {
		proxy.Cut()
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Readers and writers of three processes contend while replies are lost and connections are cut. A writer is always
// alone, nothing is left behind, and every caller gets turns.
func TestReadWriteContest_InABubble(t *testing.T) {
	t.Parallel()
	seconds := thorough.Or(10, 4)
	for _, faults := range []bool{false, true} {
		locktest.ParallelBubble(t, "faults "+strconv.FormatBool(faults), func(t *testing.T, b *locktest.Redis) {
			c := contest{
				processes: 3, readers: 4, writers: 2, hold: 5 * time.Millisecond, think: 10 * time.Millisecond, lasts: time.Duration(seconds) * time.Second, faults: faults,
				connect: func(i int) (*faultproxy.Proxy, redis.UniversalClient) {
					proxy, rdb := faultproxy.Around(t, b.Client)
					locktest.Wobble(proxy, uint64(i))
					return proxy, rdb
				},
			}
			r := c.play(t)
			t.Logf("turns %v, longest wait of a writer %s, of a reader %s, %v", r.turns, r.longest("write"), r.longest("read"), r.fails)
			if r.turns["write"] < 10*seconds || r.turns["read"] < 20*seconds {
				t.Errorf("turns %v, longest waits %s and %s, failures %v", r.turns, r.longest("write"), r.longest("read"), r.fails)
			}
			if longest := max(r.longest("write"), r.longest("read")); !faults && longest > 2*time.Second || longest > 10*time.Second {
				t.Errorf("the longest wait is %s", longest)
			}
			locktest.Pass(5 * time.Minute)
			b.WantNothing()
		})
	}
}

// TestReadWriteContest_OnAServer runs the contest with 200 readers and 20 writers on a real Redis. It takes 3
// seconds, or the time in INTERLOCK_READWRITE.
func TestReadWriteContest_OnAServer(t *testing.T) {
	t.Parallel()
	lasts := 3 * time.Second
	if d, err := time.ParseDuration(os.Getenv("INTERLOCK_READWRITE")); err == nil {
		lasts = d
	}
	server := redisserver.Start(t)
	c := contest{
		processes: 4, readers: 50, writers: 5, hold: time.Millisecond, think: 20 * time.Millisecond, lasts: lasts, faults: true,
		opts: []core.Option{locktest.Patient},
		connect: func(int) (*faultproxy.Proxy, redis.UniversalClient) {
			proxy := faultproxy.New(t, server.Addr())
			rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
			t.Cleanup(func() { _ = rdb.Close() })
			return proxy, rdb
		},
	}
	r := c.play(t)
	t.Logf("in %s: turns %v; waits of writers: half up to %s, 99%% up to %s, longest %s; of readers: half up to %s, 99%% up to %s, longest %s; failures %v; fewest turns of a writer %d, of a reader %d",
		lasts, r.turns, locktest.Percentile(r.waits["write"], 50), locktest.Percentile(r.waits["write"], 99), r.longest("write"),
		locktest.Percentile(r.waits["read"], 50), locktest.Percentile(r.waits["read"], 99), r.longest("read"), r.fails, slices.Min(r.own["write"]), slices.Min(r.own["read"]))
	if none := r.turns["write"] == 0 || r.turns["read"] == 0; none && (locktest.IsQuiet() || lasts >= time.Minute) {
		t.Errorf("turns: %v", r.turns)
	}
	if starves := slices.Min(r.own["write"]) == 0 || slices.Min(r.own["read"]) == 0; starves && lasts >= time.Minute {
		t.Errorf("a caller never had a turn: writers %v, readers %v", r.own["write"], r.own["read"])
	}
	direct := &locktest.Redis{T: t, Client: server.Client()}
	locktest.Eventually(t, "nothing left", func() bool { return len(direct.Keys(t.Context(), "*").Val()) == 0 })
}
