package interop_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// oneAtATime lets callers of both languages take turns. Two callers never hold the lock at the same time, and all finish.
func oneAtATime(t *testing.T, s *site, k kind) {
	const callers, turns = 3, 10
	java, own := javaParty{s.java}, goParty{s.locks(t)}
	name := unique("contended")
	var inside atomic.Int64
	var running sync.WaitGroup
	began := time.Now()
	for range callers {
		for _, p := range []party{java, own} {
			running.Go(func() {
				for range turns {
					turn(t, p, k, name, &inside)
				}
			})
		}
	}
	running.Wait()
	t.Logf("%d turns of %d callers: %s", 2*callers*turns, 2*callers, time.Since(began).Round(time.Millisecond))
	s.wantFree(t, k, name)
}

func turn(t *testing.T, p party, k kind, name string, inside *atomic.Int64) {
	g := take(t, p, k, name)
	if n := inside.Add(1); n != 1 {
		t.Errorf("%s is the %dth holder at the same time", p, n)
	}
	runtime.Gosched()
	inside.Add(-1)
	g.release(t)
}
