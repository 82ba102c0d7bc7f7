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

// bubbleLoad has few operations per second, because an hour has to pass in a minute.
var bubbleLoad = load{
	Goroutines: 4, Watchdog: 6 * time.Second, Backend: core.DefaultBackendTimeout,
	Think: 3 * time.Second, Work: 200 * time.Millisecond, Long: 4 * time.Second, Step: 10 * time.Millisecond, Special: 50, Edge: 8,
}

const (
	bubbleProcesses = 4
	bubbleLatency   = 300 * time.Microsecond
)

// TestHistory_Bubble runs several clients in a synctest bubble, on the embedded Redis, under faults
// of the network, restarts of Redis, and ends of clients.
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

// bubble is everything in one process, on one virtual clock.
type bubble struct {
	t      *testing.T
	seed   uint64
	epoch  time.Time
	server *redistest.Server
	direct *redis.Client
	wire   *faultproxy.Proxy // between all clients and Redis
	slow   *faultproxy.Rule  // the latency of the wire
	places []*place
	empty  time.Duration

	settled chan struct{} // whoever waits for the bubble to settle has it

	registers registerArray
	processes atomic.Int64

	mu     sync.Mutex
	events []history.Event
}

// place is where one client after another works, behind its own proxy.
type place struct {
	proxy   *faultproxy.Proxy
	through *redis.Client // the workers' clients have its options
	holed   atomic.Bool
	worker  *worker
	rdb     *redis.Client // of the worker
}

// connect is the dialer of the workers. go-redis connects a subscription under a mutex, and the time
// of a bubble does not pass while a goroutine waits for a mutex. So a connection is made at once or
// not at all.
func (p *place) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	if p.holed.Load() {
		return nil, syscall.ETIMEDOUT
	}
	return p.through.Options().Dialer(ctx, network, addr)
}

// registerArray is the memory that the locks guard.
type registerArray [24]atomic.Uint64

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

// run makes the clients work for total and ends them.
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
	weather{storm: 15 * time.Second, calm: 25 * time.Second}.pass(b.hands(), b.now, total)
	var all sync.WaitGroup
	for _, p := range b.places {
		all.Go(func() { b.finish(p) })
	}
	all.Wait()
	close(stop)
	sampling.Wait()
	time.Sleep(bubbleLoad.longestLease()) // so that no lease of the dead lasts
	visit(b.t, b.direct, lookAfter)
	b.empty = b.now() + forgotten
	s.drain(b.empty + time.Second)
}

// longestLease is how long a key may outlive everything.
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

// hands break things: one hand for each client, and one for Redis.
func (b *bubble) hands() []*hand {
	hands := []*hand{b.hand(0, "redis", b.serverFaults(), 12*time.Second)}
	for i, p := range b.places {
		faults := append(networkFaults(p.proxy, b.blackHole(p), 8*time.Second), fault{"the process dies", 2, func(h *hand) { b.replace(h, p) }})
		h := b.hand(i+1, "network", faults, 6*time.Second)
		h.behind = func() int { return p.worker.process }
		hands = append(hands, h)
	}
	return hands
}

func (b *bubble) hand(n int, name string, faults []fault, pause time.Duration) *hand {
	return &hand{
		Rand: rand.New(rand.NewPCG(b.seed, uint64(1000+n))), name: name, faults: faults, pause: pause, now: b.now, note: b.note,
	}
}

func (b *bubble) serverFaults() []fault {
	return []fault{
		{"scripts are forgotten", 2, func(*hand) { _ = b.direct.ScriptFlush(context.Background()).Err() }},
		{"restarts with its data", 2, func(h *hand) {
			b.server.Down()
			time.Sleep(h.upTo(3 * time.Second)) // between two faults, in the time of the bubble
			b.server.Up()
		}},
		{"stands still", 3, func(h *hand) {
			held := b.wire.HoldRequest(faultproxy.Command("evalsha", "eval", "ping", "subscribe"))
			b.slow.Remove()
			time.Sleep(h.upTo(8 * time.Second)) // between two faults, in the time of the bubble
			b.slow = b.wire.DelayRequest(scripts, bubbleLatency)
			held.Remove()
		}},
	}
}

// blackHole begins when no connection is half made.
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

// replace ends a client as the death of its process would: nothing that it sends from now on arrives,
// and its locks are left to their leases.
func (b *bubble) replace(h *hand, p *place) {
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
