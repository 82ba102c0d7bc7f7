package interop_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// queueUp queues waiters of the parties one after the other and returns their grants.
func (s *site) queueUp(t *testing.T, name string, parties []party) []<-chan grant {
	t.Helper()
	waits := make([]<-chan grant, len(parties))
	for i, p := range parties {
		before := len(s.queued(t, name))
		waits[i] = p.ask(t, kindOf("fair"), name)
		eventually(t, "the queue to grow", func() bool { return len(s.queued(t, name)) == before+1 })
	}
	return waits
}

// fairInterleaved queues waiters of both sides in turns. They get the lock in that order.
func fairInterleaved(t *testing.T, s *site) {
	fair, name := kindOf("fair"), unique("fair")
	java, own := javaParty{s.java}, goParty{s.locks(t)}
	holder := take(t, java, fair, name)
	waits := s.queueUp(t, name, []party{java, own, java, goParty{s.locks(t)}, java, own})
	longest := s.inOrder(t, name, holder, waits)
	t.Logf("the longest wait for a turn: %s", longest.Round(10*time.Microsecond))
}

// inOrder releases a fair lock. Its waiters must get their turns in order, one at a time, and nothing remains. It
// returns the longest time between a release and the next grant.
func (s *site) inOrder(t *testing.T, name string, holder grant, waits []<-chan grant) (longest time.Duration) {
	t.Helper()
	released := holder.release(t)
	for i, w := range waits {
		g := receive(t, w, "the next waiter")
		if left := len(s.queued(t, name)); left != len(waits)-i-1 {
			t.Errorf("waiter %d got the lock while %d waiters were in the queue, want %d", i+1, left, len(waits)-i-1)
		}
		took := g.at.Sub(released)
		if longest = max(longest, took); took > wokenWithin {
			t.Errorf("waiter %d waited %s after the release, want at most %s", i+1, took, wokenWithin)
		}
		for _, later := range waits[i+1:] {
			if len(later) > 0 {
				t.Errorf("a later waiter got the lock together with waiter %d", i+1)
			}
		}
		released = g.release(t)
	}
	s.wantFree(t, kindOf("fair"), name)
	return longest
}

// fairHeadDies kills the process of the head of the queue. The waiters behind it, of both sides, get the lock soon and
// in order.
func fairHeadDies(t *testing.T, s *site) {
	fair := kindOf("fair")
	java, own := javaParty{s.java}, goParty{s.locks(t)}
	stall := func(t *testing.T, name string, holder grant, behind []party, kill func()) {
		waits := s.queueUp(t, name, behind)
		kill()
		released := holder.release(t)
		first := receive(t, waits[0], "the waiters behind the dead head")
		took := first.at.Sub(released)
		t.Logf("stall behind the dead head: %s", took.Round(time.Millisecond))
		if took > 2*time.Second {
			t.Errorf("a stall of %s, want at most 2 s", took)
		}
		first.release(t)
		for _, w := range waits[1:] {
			receive(t, w, "the next waiter behind the dead head").release(t)
		}
		s.wantFree(t, fair, name)
	}
	for what, behind := range map[string][]party{"Go first": {own, java, own}, "Java first": {java, own, java}} {
		t.Run("of Go, "+what, func(t *testing.T) {
			t.Parallel()
			name := unique("fair")
			holder := take(t, own, fair, name)
			kill := startWaiter(t, s, "fair="+name)
			eventually(t, "the head to wait", func() bool { return len(s.queued(t, name)) == 1 })
			stall(t, name, holder, behind, kill)
		})
		t.Run("of Java, "+what, func(t *testing.T) {
			t.Parallel()
			name := unique("fair")
			holder := take(t, own, fair, name)
			jvm := interop.StartJVM(t, s.classPath)
			javaParty{s.open(t, jvm, s.config)}.ask(t, fair, name)
			eventually(t, "the head to wait", func() bool { return len(s.queued(t, name)) == 1 })
			stall(t, name, holder, behind, jvm.Kill)
		})
	}
}

// fairTimesOut lets waiters of both sides give up in the middle of the queue. The others get their turns.
func fairTimesOut(t *testing.T, s *site) {
	fair, name := kindOf("fair"), unique("fair")
	java, own := javaParty{s.java}, goParty{s.locks(t)}
	holder := take(t, java, fair, name)
	first := s.queueUp(t, name, []party{own})
	thread := s.java.Thread(t)
	gaveUp := thread.Lock(interop.Fair, name).Try(1500 * time.Millisecond)
	eventually(t, "Java in the queue", func() bool { return len(s.queued(t, name)) == 2 })
	second := s.queueUp(t, name, []party{java})
	late := make(chan error, 1)
	locks := s.locks(t)
	go func() {
		_, _, err := locks.FairLock(name).Acquire(t.Context(), core.WaitTime(time.Second))
		late <- err
	}()
	eventually(t, "Go in the queue", func() bool { return len(s.queued(t, name)) == 4 })
	third := s.queueUp(t, name, []party{own})
	if gaveUp.True() {
		t.Error("Java got the lock, which another caller holds")
	}
	if err := <-late; err == nil {
		t.Error("Go got the lock, which another caller holds")
	}
	eventually(t, "both to have left the queue", func() bool { return len(s.queued(t, name)) == 3 })
	for _, field := range s.queued(t, name) { // without the time for the waiters that gave up
		score := s.master(name).ZScore(t.Context(), fairTimeouts(name), field).Val()
		t.Logf("deadline of %s in %s", field, time.Until(time.UnixMilli(int64(score))).Round(time.Second))
	}
	released := holder.release(t)
	for _, w := range [][]<-chan grant{first, second, third} {
		g := receive(t, w[0], "the next waiter")
		if took := g.at.Sub(released); took > wokenWithin {
			t.Errorf("waited %s after the release, want at most %s", took, wokenWithin)
		}
		released = g.release(t)
	}
	s.wantFree(t, fair, name)
}
