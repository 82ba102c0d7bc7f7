package interop_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// notGranted checks that a waiter did not get the lock.
func notGranted(t *testing.T, grants <-chan grant, what string) {
	t.Helper()
	select {
	case g := <-grants:
		t.Errorf("%s got the lock together with other holders (%v)", what, g.err)
	case <-time.After(50 * time.Millisecond):
	}
}

// readersOfBoth lets a reader of each side hold a lock while a writer of either side waits. When the last reader, of
// either side, releases the lock, the writer gets it.
func readersOfBoth(t *testing.T, s *site) {
	read, write := kindOf("read"), kindOf("write")
	for _, writers := range []string{"Go", "Java"} {
		for _, last := range []string{"Go", "Java"} {
			t.Run(fmt.Sprintf("%s writes after %s", writers, last), func(t *testing.T) {
				parties := map[string]party{"Go": goParty{s.locks(t)}, "Java": javaParty{s.java}}
				writer := goParty{s.locks(t)}.orJava(s, writers)
				name := unique("readers")
				held := map[string]grant{"Go": take(t, parties["Go"], read, name), "Java": take(t, parties["Java"], read, name)}
				s.wantFields(t, name, map[string]string{"mode": "read", held["Go"].field: "1", held["Java"].field: "1"})
				waits := writer.ask(t, write, name)
				writer.awaitWaiter(t, s, write, name)
				for side := range held {
					if side != last {
						held[side].release(t)
					}
				}
				notGranted(t, waits, "a writer")
				released := held[last].release(t)
				w := receive(t, waits, "the writer")
				t.Logf("%s", w.at.Sub(released).Round(10*time.Microsecond))
				if took := w.at.Sub(released); took > wokenWithin {
					t.Errorf("waited %s after the last reader, want at most %s", took, wokenWithin)
				}
				wantRefused(t, parties["Go"], read, name)
				wantRefused(t, parties["Java"], read, name)
				w.release(t)
				s.wantFree(t, write, name)
			})
		}
	}
}

// orJava returns the party with a name.
func (p goParty) orJava(s *site, name string) party {
	if name == "Java" {
		return javaParty{s.java}
	}
	return p
}

// readerCrashes kills a process with a reader while a reader of the other side continues for longer than the lease of the
// dead reader. When that reader releases the lock, a writer of either side gets it.
func readerCrashes(t *testing.T, s *site) {
	read := kindOf("read")
	for _, writers := range []string{"Go", "Java"} {
		t.Run("Java crashes, "+writers+" writes", func(t *testing.T) {
			t.Parallel()
			jvm, name := interop.StartJVM(t, s.classPath), unique("crashed")
			take(t, javaParty{s.open(t, jvm, s.briefConfig())}, read, name)
			s.readsOn(t, goParty{s.locks(t, core.WithWatchdog(briefLease))}, goParty{s.locks(t)}.orJava(s, writers), name, jvm.Kill)
		})
		t.Run("Go crashes, "+writers+" writes", func(t *testing.T) {
			t.Parallel()
			name := unique("crashed")
			kill := startHolder(t, s, "read="+name)
			s.readsOn(t, javaParty{s.brief}, goParty{s.locks(t)}.orJava(s, writers), name, kill)
		})
	}
}

func (s *site) readsOn(t *testing.T, reader, writer party, name string, crash func()) {
	t.Helper()
	read, write := kindOf("read"), kindOf("write")
	alive := take(t, reader, read, name)
	crash()
	waits := writer.ask(t, write, name)
	time.Sleep(briefLease * 3 / 2) // until the lease of the crashed reader has expired
	notGranted(t, waits, "a writer")
	released := alive.release(t)
	w := receive(t, waits, "the writer")
	// A dead reader of Redisson may keep the lock until the lease of the last living reader would have ended.
	if took, most := w.at.Sub(released), briefLease+time.Second; took > most {
		t.Errorf("waited %s after the last living reader, want at most %s", took, most)
	}
	s.wantHeld(t, write, name, w.field, "1")
	w.release(t)
	s.wantFree(t, write, name)
}

// goDowngrades lets a writer of Go become a reader. A reader of Java gets the lock at once, and a writer gets
// it after that.
func goDowngrades(t *testing.T, s *site) {
	name := unique("downgraded")
	java, locks := javaParty{s.java}, s.locks(t)
	writing, w, err := locks.WriteLock(name).Acquire(t.Context(), core.WaitTime(0))
	if err != nil {
		t.Fatal(err)
	}
	_, r, err := locks.ReadLock(name).Acquire(writing, core.WaitTime(0))
	if err != nil {
		t.Fatal(err)
	}
	_, r = r.Handover()
	reads := java.ask(t, kindOf("read"), name)
	java.awaitWaiter(t, s, kindOf("read"), name)
	released := time.Now()
	if err := w.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader := receive(t, reads, "a reader of Java")
	t.Logf("a reader of Java got the lock %s after the downgrade", reader.at.Sub(released).Round(10*time.Microsecond))
	if took := reader.at.Sub(released); took > wokenWithin {
		t.Errorf("a reader of Java waited %s after the downgrade, want at most %s", took, wokenWithin)
	}
	s.wantFields(t, name, map[string]string{"mode": "read", r.Field(): "1", reader.field: "1"})
	writes := java.ask(t, kindOf("write"), name)
	java.awaitWaiter(t, s, kindOf("write"), name)
	reader.release(t)
	notGranted(t, writes, "a writer of Java")
	if err := r.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	receive(t, writes, "a writer of Java").release(t)
	s.wantFree(t, kindOf("write"), name)
}

// javaDowngrades lets a writer of Java become a reader, for which Redisson sends no message. A reader of Go finds out at
// its next attempt, and a writer of Go is woken when the last reader releases the lock.
func javaDowngrades(t *testing.T, s *site) {
	name := unique("downgraded")
	own, thread := goParty{s.locks(t)}, s.java.Thread(t)
	write, read := thread.Lock(interop.Write, name), thread.Lock(interop.Read, name)
	write.Lock().OK()
	read.Lock().OK()
	wantRefused(t, own, kindOf("read"), name)
	reads := own.ask(t, kindOf("read"), name)
	own.awaitWaiter(t, s, kindOf("read"), name)
	released := write.Unlock().OK().From
	reader := receive(t, reads, "a reader of Go")
	t.Logf("a reader of Go got the lock %s after the downgrade", reader.at.Sub(released).Round(time.Millisecond))
	if took := reader.at.Sub(released); took > wokenWithin {
		t.Errorf("a reader of Go waited %s after the downgrade, want about a second", took)
	}
	s.wantFields(t, name, map[string]string{"mode": "read", thread.Field(): "1", reader.field: "1"})
	writes := own.ask(t, kindOf("write"), name)
	own.awaitWaiter(t, s, kindOf("write"), name)
	reader.release(t)
	notGranted(t, writes, "a writer of Go")
	read.Unlock().OK()
	receive(t, writes, "a writer of Go").release(t)
	s.wantFree(t, kindOf("write"), name)
}

// readersAndWriters lets both sides read and write as fast as they can. A writer is always alone.
func readersAndWriters(t *testing.T, s *site) {
	const turns = 15
	name := unique("map")
	java, own, other := javaParty{s.java}, goParty{s.locks(t)}, goParty{s.locks(t)}
	var reading, writing, together atomic.Int64
	var running sync.WaitGroup
	began := time.Now()
	for _, p := range []party{java, own, java, other} {
		running.Go(func() {
			for range turns {
				g := take(t, p, kindOf("read"), name)
				n := reading.Add(1)
				if w := writing.Load(); w != 0 {
					t.Errorf("%s reads at the same time as %d writers", p, w)
				}
				if n > 1 {
					together.Add(1)
				}
				runtime.Gosched()
				reading.Add(-1)
				g.release(t)
			}
		})
	}
	for _, p := range []party{java, own, other} {
		running.Go(func() {
			for range turns {
				g := take(t, p, kindOf("write"), name)
				if w, r := writing.Add(1), reading.Load(); w != 1 || r != 0 {
					t.Errorf("%s writes at the same time as %d writers and %d readers", p, w-1, r)
				}
				runtime.Gosched()
				writing.Add(-1)
				g.release(t)
			}
		})
	}
	running.Wait()
	t.Logf("4 readers and 3 writers, %d turns each: %s; %d reads overlapped",
		turns, time.Since(began).Round(time.Millisecond), together.Load())
	s.wantFree(t, kindOf("write"), name)
}

// javaReadsSeveral lets a client of Java hold read locks on several keys for longer than its lease. Redisson 3.44 to 4.3
// renews all of the locks, but the timeout keys of only one. No writer gets the locks.
func javaReadsSeveral(t *testing.T, s *site) {
	java, own := javaParty{s.open(t, s.jvm, s.briefConfig())}, goParty{s.locks(t)}
	read, write := kindOf("read"), kindOf("write")
	names := []string{unique("several"), unique("several"), unique("several")}
	var held []grant
	for _, name := range names {
		held = append(held, take(t, java, read, name))
	}
	time.Sleep(briefLease * 3 / 2) // until leases without renewals would have expired
	lost := 0
	for _, name := range names {
		keys, err := s.master(name).Keys(t.Context(), suffixed(name, "*:rwlock_timeout:*")).Result()
		if err != nil {
			t.Fatal(err)
		}
		lost += 1 - len(keys)
		wantRefused(t, own, write, name)
		take(t, own, read, name).release(t)
		wantRefused(t, javaParty{s.java}, write, name)
		wantRefused(t, own, write, name)
	}
	t.Logf("%d of %d readers without their timeout keys", lost, len(names))
	for _, g := range held {
		g.release(t)
	}
	for _, name := range names {
		take(t, own, write, name).release(t)
		s.wantFree(t, write, name)
	}
}
