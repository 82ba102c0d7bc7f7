package history_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/history"
	"github.com/interlock-go/interlock/core/redistest"
)

// bubbleLoad has few operations per second, so that a virtual hour takes about a minute.
var bubbleLoad = load{
	Goroutines: 4, Watchdog: 6 * time.Second, Backend: core.DefaultBackendTimeout,
	Think: 3 * time.Second, Work: 200 * time.Millisecond, Long: 4 * time.Second, Step: 10 * time.Millisecond, Special: 50, Edge: 8,
}

const (
	bubbleProcesses = 4
	bubbleLatency   = 300 * time.Microsecond
)

// TestHistory_Bubble runs several clients of the embedded Redis in a synctest bubble, while the network
// fails, Redis restarts, and clients end.
func TestHistory_Bubble(t *testing.T) {
	t.Parallel()
	seed, total := newSeed(t), duration(t, bubbleEnv, 2*time.Minute)
	var b *bubble
	synctest.Test(t, func(t *testing.T) {
		b = newBubble(t, seed)
		b.run(total)
	})
	judged(t, seed, limitsOf(history.Limits{
		Backend: 2 * bubbleLoad.Backend, Slow: 8 * bubbleLoad.Backend, Poll: time.Second, Slack: 100 * time.Millisecond,
		Recovery: 3 * time.Second, Landing: 20 * time.Second, Residue: time.Second, Empty: b.empty,
	}), b.events)
	if total >= time.Minute {
		wantRun(t, b.events)
	}
}

// bubble runs all clients and Redis in one process with one virtual clock.
type bubble struct {
	t      *testing.T
	seed   uint64
	epoch  time.Time
	server *redistest.Server
	direct *redis.Client
	wire   *faultproxy.Proxy // between Redis and all clients
	slow   *faultproxy.Rule  // the latency of the wire
	places []*place
	empty  time.Duration

	settled chan struct{} // a semaphore for calls of synctest.Wait

	registers registerArray
	processes atomic.Int64

	mu     sync.Mutex
	events []history.Event
}

// place is a proxy behind which one client works after another.
type place struct {
	proxy   *faultproxy.Proxy
	through *redis.Client // the workers' clients have its options
	holed   atomic.Bool
	worker  *worker
	rdb     *redis.Client // of the worker
}

// connect is the dialer of the workers. It succeeds or fails at once: go-redis connects a subscription under
// a mutex, and the virtual time of a bubble does not pass while a goroutine waits for a mutex.
func (p *place) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	if p.holed.Load() {
		return nil, syscall.ETIMEDOUT
	}
	return p.through.Options().Dialer(ctx, network, addr)
}

// registerArray contains the values that the locks guard.
type registerArray [32]atomic.Uint64

func (r *registerArray) load(slot int) uint64         { return r[slot].Load() }
func (r *registerArray) store(slot int, value uint64) { r[slot].Store(value) }

func newBubble(t *testing.T, seed uint64) *bubble {
	t.Helper()
	b := &bubble{t: t, seed: seed, epoch: time.Now(), server: redistest.New(t), settled: make(chan struct{}, 1)}
	b.direct = b.server.Client()
	var behind *redis.Client
	b.wire, behind = faultproxy.Around(t, b.server.Client())
	b.slow = b.wire.DelayRequest(scripts, bubbleLatency)
	for range bubbleProcesses {
		p := &place{}
		p.proxy, p.through = faultproxy.Around(t, behind)
		b.places = append(b.places, p)
	}
	return b
}

func (b *bubble) now() time.Duration { return time.Since(b.epoch) }

func (b *bubble) note(e history.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

// run lets the clients work for total and then ends them.
func (b *bubble) run(total time.Duration) {
	b.t.Helper()
	visit(b.t, b.direct, prepare)
	for _, p := range b.places {
		b.start(p)
	}
	stop := make(chan struct{})
	s := sampler{b.direct, b.now, b.note}
	var sampling sync.WaitGroup
	sampling.Go(func() { s.watch(time.Second, stop) })
	weather{storm: 15 * time.Second, calm: 25 * time.Second}.pass(b.injectors(), b.now, total)
	var all sync.WaitGroup
	for _, p := range b.places {
		all.Go(func() { b.finish(p) })
	}
	all.Wait()
	close(stop)
	sampling.Wait()
	time.Sleep(bubbleLoad.longestLease()) // until the leases of dead clients have expired
	visit(b.t, b.direct, lookAfter)
	b.empty = b.now() + forgotten
	s.drain(b.empty + time.Second)
}

// longestLease returns the longest time for which a key can outlive its clients.
func (l load) longestLease() time.Duration { return max(l.Watchdog, l.Long+l.Long/20) }

func (b *bubble) start(p *place) {
	b.t.Helper()
	o := *p.through.Options()
	o.Dialer = p.connect
	p.rdb = redis.NewClient(&o)
	locks, err := core.New(p.rdb, core.WithWatchdog(bubbleLoad.Watchdog), core.WithBackendTimeout(bubbleLoad.Backend), core.WithObserver(refusals{b.now}.observer()))
	if err != nil {
		b.t.Fatal(err)
	}
	p.worker = &worker{
		load: bubbleLoad, process: int(b.processes.Add(1)), seed: b.seed, locks: locks,
		shared: &b.registers, now: b.now, note: b.note, stop: make(chan struct{}),
	}
	p.worker.start()
}

func (b *bubble) finish(p *place) {
	e := history.Event{Kind: history.Finish, Process: p.worker.process, Begin: b.now()}
	e.Note = text(errors.Join(p.worker.finish(context.Background()), p.rdb.Close()))
	e.End = b.now()
	b.note(e)
}

// injectors returns one injector for each client and one for Redis.
func (b *bubble) injectors() []*injector {
	injectors := []*injector{b.injector(0, "redis", b.serverFaults(), 12*time.Second)}
	for i, p := range b.places {
		faults := append(networkFaults(p.proxy, b.blackHole(p), 8*time.Second), fault{"the process dies", 2, func(h *injector) { b.replace(h, p) }})
		h := b.injector(i+1, "network", faults, 6*time.Second)
		h.behind = func() int { return p.worker.process }
		injectors = append(injectors, h)
	}
	return injectors
}

func (b *bubble) injector(n int, name string, faults []fault, pause time.Duration) *injector {
	return &injector{
		Rand: rand.New(rand.NewPCG(b.seed, uint64(1000+n))), name: name, faults: faults, pause: pause, now: b.now, note: b.note,
	}
}

func (b *bubble) serverFaults() []fault {
	return []fault{
		{"scripts are forgotten", 2, func(*injector) { _ = b.direct.ScriptFlush(context.Background()).Err() }},
		{"restarts with its data", 2, func(h *injector) {
			b.server.Down()
			time.Sleep(h.upTo(3 * time.Second)) // the length of the fault, in virtual time
			b.server.Up()
		}},
		{"stands still", 3, func(h *injector) {
			held := b.wire.HoldRequest(faultproxy.Command("evalsha", "eval", "ping", "subscribe"))
			b.slow.Remove()
			time.Sleep(h.upTo(8 * time.Second)) // the length of the fault, in virtual time
			b.slow = b.wire.DelayRequest(scripts, bubbleLatency)
			held.Remove()
		}},
	}
}

// blackHole returns a function that starts and ends a black hole. It starts one only when no client is
// connecting.
func (b *bubble) blackHole(p *place) func(on bool) {
	return func(on bool) {
		if on {
			b.settled <- struct{}{} // one at a time
			synctest.Wait()
			p.holed.Store(true)
			p.proxy.BlackHole(true)
			<-b.settled
			return
		}
		p.proxy.BlackHole(false)
		p.holed.Store(false)
	}
}

// replace ends a client like the death of its process: Redis gets no further commands from it, and its locks
// expire with their leases. Then replace starts the next client.
func (b *bubble) replace(h *injector, p *place) {
	p.proxy.Refuse(true)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	close(p.worker.stop)
	_ = p.worker.locks.Close(ended)
	p.worker.running.Wait()
	_ = p.rdb.Close()
	p.proxy.Refuse(false)
	h.after = bubbleLoad.longestLease()
	b.start(p)
}
