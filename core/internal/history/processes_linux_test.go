package history_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/history"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// processLoad has short leases, so that many of them expire within a few seconds.
var processLoad = load{
	Goroutines: 8, Watchdog: 1200 * time.Millisecond, Backend: core.DefaultBackendTimeout,
	Think: 20 * time.Millisecond, Work: 3 * time.Millisecond, Long: time.Second, Step: time.Millisecond, Special: 6, Edge: 2,
}

const workerProcesses = 3

// TestHistory_Processes runs worker processes, and two threads that lock like Redisson, with a redis-server that keeps its
// data, while the network fails, workers are stopped and killed, and Redis is stopped, killed and restarted.
func TestHistory_Processes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, newSeed(t))
	f.run(duration(t, durationEnv, 5*time.Second))
	judged(t, f.seed, limitsOf(unhurried(history.Limits{
		Backend: 2 * processLoad.Backend, Slow: 8 * processLoad.Backend, Poll: time.Second, Slack: 300 * time.Millisecond,
		Recovery: processLoad.recovery(), Landing: 5 * time.Second, Residue: time.Second, Empty: f.empty,
	})), f.events)
	if os.Getenv(durationEnv) != "" { // otherwise the machine may be too busy for a run
		wantRun(t, f.events)
		wantCovered(t, f.events)
	}
}

// unhurried returns the limits of a run. If no length was requested, the run shares the machine with other
// tests, so the limits that depend on speed are a minute.
func unhurried(l history.Limits) history.Limits {
	if os.Getenv(durationEnv) == "" {
		l.Slack, l.Turn = time.Minute, time.Minute
	}
	return l
}

// recovery returns the time for which a fault has effects: until leases have expired and dead connections
// were detected.
func (l load) recovery() time.Duration { return l.longestLease() + l.Backend }

// fleet contains the processes of a run.
type fleet struct {
	t      *testing.T
	seed   uint64
	epoch  time.Duration
	now    func() time.Duration
	server *redisserver.Server
	direct *redis.Client
	posts  []*post
	shared string
	empty  time.Duration

	mu     sync.Mutex
	number int // the number of processes so far
	logs   []string
	events []history.Event
}

// post is a proxy behind which one worker process works after another.
type post struct {
	proxy   *faultproxy.Proxy
	process *workerProcess
	number  atomic.Int64 // the number of the process
}

func newFleet(t *testing.T, seed uint64) *fleet {
	t.Helper()
	f := &fleet{t: t, seed: seed, epoch: monotonic(), server: redisserver.StartDurable(t)}
	f.now = clockSince(f.epoch)
	f.direct = f.server.Client(func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, 10*time.Second })
	var err error
	if f.shared, err = newRegisterFile(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for range workerProcesses {
		f.posts = append(f.posts, &post{proxy: faultproxy.New(t, f.server.Addr())})
	}
	return f
}

func (f *fleet) note(e history.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, e)
}

// run lets the workers work for total, ends them, and gathers their records.
func (f *fleet) run(total time.Duration) {
	f.t.Helper()
	visit(f.t, f.direct, prepare)
	for _, p := range f.posts {
		f.start(p)
		f.t.Cleanup(func() { p.process.kill() })
	}
	stop := make(chan struct{})
	s := sampler{f.direct, f.now, f.note}
	var watching sync.WaitGroup
	watching.Go(func() { watchStalls(0, f.now, f.note, stop) })
	watching.Go(func() { s.watch(50*time.Millisecond, stop) })
	done, threads := f.startThreads()
	weatherOf(total).pass(f.injectors(), f.now, total)
	close(done)
	threads.Wait()
	for _, p := range f.posts {
		p.process.finish()
	}
	for _, p := range f.posts {
		if err := p.process.await(time.Minute); err != nil {
			f.t.Error(err)
		}
	}
	time.Sleep(processLoad.longestLease() + processLoad.Backend) // until the leases of dead workers have expired
	visit(f.t, f.direct, lookAfter)
	f.empty = f.now() + forgotten
	s.drain(f.empty + time.Second)
	close(stop)
	watching.Wait()
	f.gather()
}

// strangers is the number of threads of Redisson.
const strangers = 2

// startThreads starts the threads of Redisson. They end after done was closed.
func (f *fleet) startThreads() (done chan struct{}, threads *sync.WaitGroup) {
	f.t.Helper()
	shared, err := os.OpenFile(f.shared, os.O_RDWR, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = shared.Close() })
	done, threads = make(chan struct{}), new(sync.WaitGroup)
	s := stranger{f.direct, registerFile{shared}, f.now, f.note}
	for thread := 1; thread <= strangers; thread++ {
		random := rand.New(rand.NewPCG(f.seed, uint64(2000+thread)))
		threads.Go(func() { s.work(random, thread, done) })
	}
	return done, threads
}

// weatherOf returns a weather whose calms are long enough for a judgment.
func weatherOf(total time.Duration) weather {
	calm := processLoad.recovery() + 1500*time.Millisecond
	return weather{storm: min(6*time.Second, max(total-calm, time.Second)), calm: calm}
}

// start starts the next process of a post.
func (f *fleet) start(p *post) {
	f.mu.Lock()
	f.number++
	log := filepath.Join(f.t.ArtifactDir(), fmt.Sprintf("worker-%d.jsonl", f.number))
	f.logs = append(f.logs, log)
	task := workerTask{
		Load: processLoad, Process: f.number, Seed: f.seed, Epoch: f.epoch,
		Redis: p.proxy.Addr(), Shared: f.shared, Log: log,
	}
	f.mu.Unlock()
	p.number.Store(int64(task.Process))
	var err error
	if p.process, err = startWorker(task); err != nil {
		f.t.Errorf("worker %d: %v", task.Process, err)
	}
}

// gather reads the records of the workers. A killed worker has not recorded its end.
func (f *fleet) gather() {
	f.t.Helper()
	for _, log := range f.logs {
		file, err := os.Open(log)
		if err != nil {
			f.t.Fatal(err)
		}
		events, err := history.Read(file)
		_ = file.Close()
		if err != nil {
			f.t.Fatalf("%s: %v", log, err)
		}
		f.events = append(f.events, events...)
	}
}

// injectors returns one injector for Redis, one for the network of each worker, and one for the worker
// processes.
func (f *fleet) injectors() []*injector {
	injectors := []*injector{f.injector(0, "redis", f.serverFaults(), time.Second)}
	for i, p := range f.posts {
		faults := networkFaults(p.proxy, p.proxy.BlackHole, 2*processLoad.Watchdog)
		h := f.injector(i+1, fmt.Sprintf("network %d", i+1), faults, 600*time.Millisecond)
		h.behind = func() int { return int(p.number.Load()) }
		injectors = append(injectors, h)
	}
	return append(injectors, f.injector(len(f.posts)+1, "workers", f.workerFaults(), time.Second))
}

func (f *fleet) injector(n int, name string, faults []fault, pause time.Duration) *injector {
	return &injector{
		Rand: rand.New(rand.NewPCG(f.seed, uint64(1000+n))), name: name, faults: faults, pause: pause, now: f.now, note: f.note,
	}
}

func (f *fleet) serverFaults() []fault {
	return []fault{
		{"is stopped", 4, func(h *injector) {
			f.server.Stop()
			time.Sleep(h.upTo(1500 * time.Millisecond)) // the length of the fault
			f.server.Continue()
		}},
		{"is killed and restarted", 2, func(h *injector) {
			f.server.Kill()
			time.Sleep(h.upTo(500 * time.Millisecond)) // the length of the fault
			f.server.Restart()
		}},
		{"forgets scripts", 1, func(*injector) { _ = f.direct.ScriptFlush(context.Background()).Err() }},
		{"loses subscribers", 2, func(*injector) {
			_ = f.direct.Do(context.Background(), "client", "kill", "type", "pubsub").Err()
		}},
	}
}

func (f *fleet) workerFaults() []fault {
	return []fault{
		{"one is stopped", 5, func(h *injector) {
			pick(&caller{Rand: h.Rand}, f.posts).process.pause(h.upTo(2 * processLoad.Watchdog))
		}},
		{"one is killed and replaced", 2, func(h *injector) {
			p := pick(&caller{Rand: h.Rand}, f.posts)
			p.process.kill()
			for _, of := range forced {
				f.note(lastForce(of, f.now()))
			}
			h.after = processLoad.longestLease()
			f.start(p)
		}},
	}
}

// lastForce returns the force release that a process may have sent just before it was killed.
func lastForce(of target, killed time.Duration) history.Event {
	return history.Event{
		Kind: history.Force, Keys: []string{of.key}, Lock: of.lock, Begin: killed - 3*processLoad.Backend, End: killed,
		Outcome: history.Unavailable, Note: "possible: the process was killed",
	}
}
