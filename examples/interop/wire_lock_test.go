package interop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/interop"
)

// The keys and channels that are derived from the name of a lock.
func fairQueue(name string) string    { return prefixed("redisson_lock_queue", name) }
func fairTimeouts(name string) string { return prefixed("redisson_lock_timeout", name) }
func rwChannel(name string) string    { return prefixed("redisson_rwlock", name) }
func readTimeout(name, field string, hold int) string {
	return suffixed(name, fmt.Sprintf("%s:rwlock_timeout:%d", field, hold))
}

// queued returns the members of the queue of a fair lock in order. Each has a deadline.
func (s *site) queued(t *testing.T, name string) []string {
	t.Helper()
	queue := s.master(name).LRange(t.Context(), fairQueue(name), 0, -1).Val()
	deadlines := s.master(name).ZRange(t.Context(), fairTimeouts(name), 0, -1).Val()
	if slices.Compare(slices.Sorted(slices.Values(queue)), slices.Sorted(slices.Values(deadlines))) != 0 {
		return nil // one script changes both, so look again
	}
	return queue
}

func (s *site) awaitQueue(t *testing.T, name string, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the queue of %s to be %v", name, want), func() bool {
		return slices.Equal(s.queued(t, name), want)
	})
}

// fairInOrder queues threads for a fair lock. They get it in that order, and nothing remains.
func fairInOrder(t *testing.T, s *site) {
	name := unique("fair")
	holder := s.java.Thread(t)
	holder.Lock(interop.Fair, name).Lock().OK()
	s.wantHeld(t, kind{}, name, holder.Field(), "1")

	var fields []string
	var waiters []interop.Held
	var calls []*interop.Call
	for range 3 {
		thread := s.java.Thread(t)
		lock := thread.Lock(interop.Fair, name)
		fields, waiters = append(fields, thread.Field()), append(waiters, lock)
		calls = append(calls, lock.Lock())
		s.awaitQueue(t, name, fields...)
	}
	last := holder.Lock(interop.Fair, name).Unlock().OK().From
	for i, call := range calls {
		had := call.OK().To
		s.wantHeld(t, kind{}, name, fields[i], "1")
		s.awaitQueue(t, name, fields[i+1:]...)
		t.Logf("waiter %d got the lock %s after the release", i+1, had.Sub(last).Round(10*time.Microsecond))
		last = waiters[i].Unlock().OK().From
	}
	s.wantGone(t, name, fairQueue(name), fairTimeouts(name))
}

// fairGivesUp lets a waiter in the middle of the queue give up. It leaves the list and the deadlines.
func fairGivesUp(t *testing.T, s *site) {
	name := unique("fair")
	holder, second, third := s.java.Thread(t), s.java.Thread(t), s.java.Thread(t)
	secondField, thirdField := second.Field(), third.Field() // asked before the threads wait
	holder.Lock(interop.Fair, name).Lock().OK()
	late := second.Lock(interop.Fair, name).Try(2 * time.Second)
	s.awaitQueue(t, name, secondField)
	waits := third.Lock(interop.Fair, name).Lock()
	s.awaitQueue(t, name, secondField, thirdField)
	if late.True() {
		t.Error("the second thread got the lock, which another thread holds")
	}
	s.awaitQueue(t, name, thirdField)
	holder.Lock(interop.Fair, name).Unlock().OK()
	waits.OK()
	third.Lock(interop.Fair, name).Unlock().OK()
	s.wantGone(t, name, fairQueue(name), fairTimeouts(name))
}

// readersThenWriter lets two readers hold a lock while a writer waits. When the last reader releases the
// lock, the writer gets it.
func readersThenWriter(t *testing.T, s *site) {
	name := unique("rw")
	messages := s.messages(t, name, rwChannel(name))
	one, two, writer := s.java.Thread(t), s.java.Thread(t), s.java.Thread(t)
	one.Lock(interop.Read, name).Lock().OK()
	two.Lock(interop.Read, name).Lock().OK()
	two.Lock(interop.Read, name).Lock().OK()
	s.wantFields(t, name, map[string]string{"mode": "read", one.Field(): "1", two.Field(): "2"})
	for _, key := range []string{
		readTimeout(name, one.Field(), 1), readTimeout(name, two.Field(), 1), readTimeout(name, two.Field(), 2),
	} {
		s.wantValue(t, key, "1")
	}
	if writer.Lock(interop.Write, name).TryOnce().True() {
		t.Error("a writer got the lock while readers hold it")
	}
	waits := writer.Lock(interop.Write, name).Lock()
	eventually(t, "the writer to wait", func() bool { return s.listeners(t, name, rwChannel(name)) == 2 })

	one.Lock(interop.Read, name).Unlock().OK()
	two.Lock(interop.Read, name).Unlock().OK()
	s.wantFields(t, name, map[string]string{"mode": "read", two.Field(): "1"})
	s.wantGone(t, readTimeout(name, one.Field(), 1), readTimeout(name, two.Field(), 2))
	two.Lock(interop.Read, name).Unlock().OK()
	wantMessage(t, messages, "0")
	waits.OK()
	s.wantFields(t, name, map[string]string{"mode": "write", writer.Field() + ":write": "1"})
	writer.Lock(interop.Write, name).Unlock().OK()
	wantMessage(t, messages, "1")
	s.wantGone(t, name, readTimeout(name, two.Field(), 1))
}

// writerDowngrades lets a writer acquire the read lock and release the write lock. Other callers can then
// read.
func writerDowngrades(t *testing.T, s *site) {
	name := unique("rw")
	writer, reader := s.java.Thread(t), s.java.Thread(t)
	writer.Lock(interop.Write, name).Lock().OK()
	writer.Lock(interop.Read, name).Lock().OK()
	s.wantFields(t, name, map[string]string{"mode": "write", writer.Field() + ":write": "1", writer.Field(): "1"})
	if reader.Lock(interop.Read, name).TryOnce().True() {
		t.Error("a reader got the lock while a writer holds it")
	}
	writer.Lock(interop.Write, name).Unlock().OK()
	s.wantFields(t, name, map[string]string{"mode": "read", writer.Field(): "1"})
	if !reader.Lock(interop.Read, name).TryOnce().True() {
		t.Error("a reader did not get the lock while only a reader holds it")
	}
	reader.Lock(interop.Read, name).Unlock().OK()
	writer.Lock(interop.Read, name).Unlock().OK()
	s.wantGone(t, name, readTimeout(name, writer.Field(), 1), readTimeout(name, reader.Field(), 1))
}

// redlockOverServers lets a lock use three servers, one of which dies.
func redlockOverServers(t *testing.T, s *site) {
	name := unique("redlock")
	servers := []*redisserver.Server{redisserver.Start(t), redisserver.Start(t), redisserver.Start(t)}
	clients := make([]*interop.Client, len(servers))
	for i, srv := range servers {
		clients[i] = s.jvm.Open(t, interop.Config{
			Mode: single, Addrs: []string{srv.Addr()}, Timeout: 300 * time.Millisecond, Retries: "1",
		})
	}
	one, two := s.java.Thread(t), s.java.Thread(t)
	lock := one.Redlock(name, clients...)
	_, id, _ := strings.Cut(one.Field(), ":") // each client has a different id; the thread id is the same
	field := func(i int) string { return clients[i].ID() + ":" + id }
	lock.TryFor(5*time.Second, time.Minute).OK()
	for i, srv := range servers {
		got := srv.Client().HGetAll(t.Context(), name).Val()
		if len(got) != 1 || got[field(i)] != "1" {
			t.Errorf("server %d: got %v in Redis, want one hold of %s", i, got, field(i))
		}
	}
	if two.Redlock(name, clients...).TryOnce().True() {
		t.Error("a second caller got the lock")
	}
	lock.Unlock().OK()

	servers[0].Kill()
	if !two.Redlock(name, clients...).TryFor(20*time.Second, time.Minute).True() {
		t.Error("a caller did not get the lock with two of three servers")
	}
	for i, srv := range servers[1:] {
		if n := srv.Client().HLen(t.Context(), name).Val(); n != 1 {
			t.Errorf("server %d: %d holds in Redis, want 1", i+1, n)
		}
	}
}
