package interop_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

const (
	fairClients = 5 // two of them Redisson clients
	fairTurns   = 10
)

// fairFifty queues fifty waiters of five clients in turns. Two of the clients are Redisson clients. The waiters get
// the lock in that order.
func fairFifty(t *testing.T, s *site) {
	name := unique("fair")
	clients := []party{
		javaParty{s.java}, goParty{s.locks(t)}, javaParty{s.open(t, s.jvm, s.config)}, goParty{s.locks(t)}, goParty{s.locks(t)},
	}
	holder := take(t, clients[1], kindOf("fair"), name)
	var order []party
	for range fairTurns {
		for _, i := range rand.Perm(fairClients) {
			order = append(order, clients[i])
		}
	}
	waits := s.queueUp(t, name, order)
	began := time.Now()
	longest := s.inOrder(t, name, holder, waits)
	t.Logf("%d turns in the order of arrival in %s, the longest wait for one %s",
		len(order), time.Since(began).Round(time.Millisecond), longest.Round(10*time.Microsecond))
}

// fairStall is the target for the time in which the lock is free behind a dead head. Redisson alone would wait for 5
// minutes, its fairLockWaitTimeout. A test fails only above fairStallBound, which leaves room for a busy machine.
const (
	fairStall      = 2 * time.Second
	fairStallBound = 15 * time.Second
	fairPatience   = 80 * time.Second
)

// fairKills queues fifty waiters of five clients in turns, each client in a separate process. Two processes of Go and
// one of Java are killed at random times while their waiters have turns. All other waiters get their turns, no
// waiter waits long while the lock is free, and nothing remains. The last waiter is of Go: without it, waiters of
// Redisson behind a dead head of Redisson would wait for 5 minutes.
func fairKills(t *testing.T, s *site) {
	name := unique("fair")
	java, own := javaParty{s.brief}, goParty{s.locks(t)}
	jvm := interop.StartJVM(t, s.classPath)
	victim := javaParty{s.open(t, jvm, s.briefConfig())}
	askOne, killOne := startTurns(t, s, "fair="+name)
	askTwo, killTwo := startTurns(t, s, "fair="+name)

	holder := take(t, own, kindOf("fair"), name)
	var running sync.WaitGroup
	live := func(p party, survives bool) func() {
		return func() { s.turnIn(t, &running, p, name, survives) }
	}
	asks := []func(){live(java, true), askOne, live(victim, false), askTwo, live(own, true)}
	for turn := range fairTurns {
		order := rand.Perm(fairClients)
		if turn == fairTurns-1 {
			order = append(rand.Perm(fairClients-1), fairClients-1)
		}
		for _, i := range order {
			before := len(s.queued(t, name))
			asks[i]()
			eventually(t, "the queue to grow", func() bool { return len(s.queued(t, name)) == before+1 })
		}
	}
	holder.release(t)
	seen := s.watchFair(t, name, []func(){killOne, jvm.Kill, killTwo})
	running.Wait()
	t.Logf("free while callers waited: at most %s, want %s; %d times longer than 100 ms. The longest hold: %s",
		seen.free.Round(time.Millisecond), fairStall, seen.stalls, seen.held.Round(time.Millisecond))
	if seen.free > fairStallBound {
		t.Errorf("a stall of %s", seen.free)
	}
	s.wantFree(t, kindOf("fair"), name)
}

// turnIn waits for a turn in the background. A waiter that survives must get its turn.
func (s *site) turnIn(t *testing.T, running *sync.WaitGroup, p party, name string, survives bool) {
	t.Helper()
	grants := p.ask(t, kindOf("fair"), name)
	running.Go(func() {
		limit := time.NewTimer(fairPatience)
		defer limit.Stop()
		select {
		case g := <-grants:
			err := g.err
			if err == nil {
				time.Sleep(turnTime) // the turn
				_, err = g.free(t)
			}
			if err != nil && survives {
				t.Errorf("%s: %v", p, err)
			}
		case <-limit.C:
			t.Errorf("%s had no turn within %s", p, fairPatience)
		}
	})
}

// fairSeen holds the observations of a queue: the longest time in which the lock was free while a waiter was in the
// queue (free), the number of such times above 100 ms (stalls), and the longest hold (held), which is the lease if the
// holder was killed.
type fairSeen struct {
	free, held time.Duration
	stalls     int
}

// watchFair observes a fair lock until the queue is empty. It calls each function of a list when the queue has shrunk
// to a random length.
func (s *site) watchFair(t *testing.T, name string, happens []func()) fairSeen {
	t.Helper()
	var seen fairSeen
	var running sync.WaitGroup
	defer running.Wait()
	at := make([]int, len(happens))
	for i := range at {
		at[i] = 8 + rand.IntN(35)
	}
	holder, since := "", time.Now()
	for limit := time.Now().Add(fairPatience); time.Now().Before(limit); time.Sleep(2 * time.Millisecond) { // polls, up to a limit
		queue, now := s.master(name).LRange(t.Context(), fairQueue(name), 0, -1).Val(), time.Now()
		has := strings.Join(s.master(name).HKeys(t.Context(), name).Val(), " ")
		if has != holder || len(queue) == 0 {
			seen.note(holder, now.Sub(since))
			holder, since = has, now
		}
		if len(queue) == 0 {
			return seen
		}
		for i, length := range at {
			if len(queue) <= length {
				t.Logf("killed a process while %d callers waited", len(queue))
				running.Go(happens[i])
				at[i] = -1
			}
		}
	}
	t.Errorf("the queue is not empty after %s", fairPatience)
	return seen
}

func (f *fairSeen) note(holder string, lasted time.Duration) {
	if holder != "" {
		f.held = max(f.held, lasted)
		return
	}
	if f.free = max(f.free, lasted); lasted > 100*time.Millisecond {
		f.stalls++
	}
}

// fairAsks counts the scripts of waiters while the head of the queue is dead and the lock is free, on a separate
// server.
func fairAsks(t *testing.T, s *site) {
	const waiters = 10
	t.Run("Java, until Go comes", func(t *testing.T) { t.Parallel(); javaAsks(t, newBed(t, s)) })
	for _, what := range []string{"Go", "Go and Java"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			quiet := newBed(t, s)
			own, name := goParty{quiet.locks(t)}, unique("fair")
			head, kill := quiet.openKillable(t)
			holder := take(t, own, kindOf("fair"), name)
			quiet.queueUp(t, name, []party{head})
			var behind []party
			for i := range waiters {
				if what == "Go" || i%2 == 0 {
					behind = append(behind, own)
				} else {
					behind = append(behind, javaParty{quiet.java})
				}
			}
			waits := quiet.queueUp(t, name, behind)
			kill()
			before := quiet.countScripts(t)
			released := holder.release(t)
			first := receive(t, waits[0], "the waiters behind the dead head")
			asked, took := quiet.countScripts(t)-before, first.at.Sub(released)
			t.Logf("%d waiters (%s) behind a dead head sent %d scripts in %s, %.0f per second",
				waiters, what, asked, took.Round(time.Millisecond), float64(asked)/took.Seconds())
			if what == "Go" && float64(asked) > 3*waiters*(1+took.Seconds()) {
				t.Errorf("%d scripts in %s: want at most 3 per waiter and second", asked, took)
			}
			first.release(t)
			for _, w := range waits[1:] {
				receive(t, w, "the next waiter behind the dead head").release(t)
			}
			quiet.wantFree(t, kindOf("fair"), name)
		})
	}
}

// openKillable opens a client of Redisson in a separate process, which the test can kill.
func (s *site) openKillable(t *testing.T) (p javaParty, kill func()) {
	t.Helper()
	jvm := interop.StartJVM(t, s.classPath)
	return javaParty{s.open(t, jvm, s.config)}, jvm.Kill
}

// javaAsks lets only threads of Java wait behind a dead head of Java. After they wake, they send scripts as fast as
// they can and would do so for 5 minutes. When a caller of Go arrives, it gets the lock, and the threads get it
// after that.
func javaAsks(t *testing.T, s *site) {
	const lease = 5 * time.Second // Java sleeps until then
	java, own, name := javaParty{s.java}, goParty{s.locks(t)}, unique("fair")
	head, kill := s.openKillable(t)
	if _, _, err := own.locks.FairLock(name).Acquire(t.Context(), core.WaitTime(0), core.LeaseTime(lease)); err != nil {
		t.Fatal(err)
	}
	waits := s.queueUp(t, name, []party{head, java, java, java})[1:]
	kill()
	eventually(t, "the lock to be free", func() bool { return s.master(name).Exists(t.Context(), name).Val() == 0 })
	began, before := time.Now(), s.countScripts(t)
	time.Sleep(briefLease / 2) // the time in which scripts are counted
	asked := s.countScripts(t) - before
	t.Logf("3 waiters (Java) behind a dead head sent %.0f scripts per second", float64(asked)/time.Since(began).Seconds())
	came := time.Now()
	last := own.ask(t, kindOf("fair"), name)
	for i, w := range append(waits, last) {
		g := receive(t, w, "the next waiter behind the dead head")
		if i == 0 {
			t.Logf("the first waiter got the lock %s after a caller of Go arrived", g.at.Sub(came).Round(time.Millisecond))
		}
		g.release(t)
	}
	s.wantFree(t, kindOf("fair"), name)
}

// newBed returns a site with a separate server and clients, in the same process of Java.
func newBed(t *testing.T, s *site) *site {
	t.Helper()
	quiet := &site{bed: startSingle(t), topology: single, version: s.version, classPath: s.classPath, jvm: s.jvm}
	quiet.java = quiet.open(t, s.jvm, quiet.config)
	quiet.rdb = quiet.client()
	return quiet
}

// countScripts returns the number of scripts that the server executed.
func (s *site) countScripts(t *testing.T) (calls int64) {
	t.Helper()
	stats, err := s.master("").InfoMap(context.WithoutCancel(t.Context()), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{"cmdstat_eval", "cmdstat_evalsha"} {
		calls += callsOf(stats["Commandstats"][script])
	}
	return calls
}

// callsOf reads "calls=21,usec=…".
func callsOf(stat string) (calls int64) {
	first, _, _ := strings.Cut(strings.TrimPrefix(stat, "calls="), ",")
	for _, digit := range first {
		calls = calls*10 + int64(digit-'0')
	}
	return calls
}
