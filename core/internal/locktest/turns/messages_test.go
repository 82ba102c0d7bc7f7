package turns_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/mempipe"
)

// TestSubscription_Faults breaks the subscription of a waiter in every way. The next release wakes the waiter in
// bounded time, not at the end of the lease.
func TestSubscription_Faults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fault func(r *locktest.Redis)
	}{
		{"none", func(*locktest.Redis) {}},
		{"killed", func(r *locktest.Redis) {
			locktest.Must(r.T, r.Client.ClientKillByFilter(r.T.Context(), "TYPE", "pubsub").Err())
		}},
		{locktest.Silent.Name, func(r *locktest.Redis) { locktest.Silent.Begin(r.Proxy) }}, // until after the release
		{locktest.Cut.Name, func(r *locktest.Redis) { locktest.Cut.Begin(r.Proxy) }},
		{"server restarted", func(r *locktest.Redis) { r.Server.Restart() }},
		{"key deleted", func(r *locktest.Redis) { locktest.Must(r.T, r.Client.Del(r.T.Context(), "k").Err()) }},
		{"flushed", func(r *locktest.Redis) { locktest.Must(r.T, r.Client.FlushAll(r.T.Context()).Err()) }},
	} {
		locktest.Parallel(t, tt.name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			waiter, holder := r.Behind(core.WithBackendTimeout(3*time.Second)), r.Beside()
			_, hold := locktest.MustAcquire(t, t.Context(), holder.Lock("k"), core.LeaseTime(time.Hour))
			asked := r.Proxy.Watch(faultproxy.Command("SUBSCRIBE"))
			got := locktest.GoAcquire(t.Context(), waiter.Lock("k"), core.WaitTime(30*time.Second))
			<-asked.Hit()
			tt.fault(r)
			if err := hold.Release(t.Context()); err != nil && !errors.Is(err, core.ErrLost) {
				t.Errorf("release: %v", err)
			}
			free := time.Now()
			r.Proxy.BlackHole(false)
			o := locktest.Got(r.T, got)
			locktest.WantAtMost(t, "waking", time.Since(free), 5*time.Second) // a poll, and a command that the black hole has swallowed
			locktest.MustRelease(t, o.Hold)
			r.WantFreed("k")
		})
	}
}

// flood publishes n messages on the channel of key as fast as possible.
func flood(b *locktest.Redis, key string, n int) {
	b.T.Helper()
	const part = 1000
	for sent := 0; sent < n; sent += part {
		_, err := b.Pipelined(context.Background(), func(p redis.Pipeliner) error {
			for range min(part, n-sent) {
				p.Publish(context.Background(), locktest.ChannelOf(key), "0")
			}
			return nil
		})
		locktest.Must(b.T, err)
	}
}

// Many messages that arrive at once make the client ask Redis once about the holder, and once more after the answer.
// Waiters do not attempt more often.
func TestFlood_OneQuestionAtATime(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		got := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Minute))
		b.AwaitListeners("k", 1)
		locktest.Pass(100 * time.Millisecond) // the confirmation of the subscription makes all clients look, too
		sent := proxy.Watch(locktest.Scripts)
		questions := proxy.HoldReply(locktest.ScriptOn(t, "renew", "k"))
		flood(b, "k", 20_000)
		synctest.Wait()
		locktest.WantSame(t, "questions about one holder at a time", questions.Hits(), 1)
		questions.Release()
		locktest.Pass(100 * time.Millisecond)
		locktest.WantSame(t, "questions in all", questions.Hits(), 2)
		if n := sent.Hits(); n > 200 {
			t.Errorf("%d scripts for messages of one instant, want at most 200", n)
		}
		locktest.WantAlive(t, ctx)
		locktest.MustRelease(t, hold)
		locktest.MustRelease(t, (<-got).Hold)
	})
}

// Endless messages cost a bounded number of commands, for a key that the client holds and for a key that it waits for.
// The message of a later release wakes a waiter as usual.
func TestFlood_EndlessMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		held bool // by the same client
	}{{"held", true}, {"waited for", false}} {
		locktest.ParallelBubble(t, tt.name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			if tt.held {
				_, _ = locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			} else {
				b.Take("k", locktest.Stranger, time.Hour)
			}
			at := locktest.AcquiredAt(t, locks, "k")
			b.AwaitListeners("k", 1)
			sent := proxy.Watch(locktest.Scripts)
			const seconds = 4
			for range seconds * 1000 {
				b.Publish(t.Context(), locktest.ChannelOf("k"), "0")
				locktest.Pass(time.Millisecond)
			}
			if rate := sent.Hits() / seconds; rate > 300 {
				t.Errorf("%d commands per second, want at most 300", rate)
			}
			if sent.Hits() == 0 {
				t.Error("no command was sent: the client does not listen to the messages")
			}
			locktest.Pass(time.Second)
			b.Take("k", locktest.Stranger, time.Hour)
			b.Free("k")
			freed := time.Now()
			if took := (<-at).Sub(freed); took != 0 {
				t.Errorf("woken %s after the message, want at once", took)
			}
		})
	}
}

// On a real Redis, 80,000 messages arrive on the channel of a held key. They cost neither a goroutine nor a command
// each, and other locks stay available.
func TestFlood_OtherLocksStayAvailable(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks, sent := b.Counted(locktest.Patient)
	b.Warm(locks)
	ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	got := locktest.GoAcquire(t.Context(), locks.Lock("k"))
	b.AwaitListeners("k", 1)
	before, start := sent.Hits(), time.Now()
	var most, turns atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			most.Store(max(most.Load(), int64(runtime.NumGoroutine())))
			locktest.WantOK(t, locks.Lock("other").Do(t.Context(), func(context.Context) error { return nil }))
			turns.Add(1)
		}
	}()
	idle := int64(runtime.NumGoroutine())
	flood(b, "k", 80_000)
	took := time.Since(start)
	close(stop)
	<-done
	commands := int64(sent.Hits()-before) - 2*turns.Load()
	t.Logf("80,000 messages in %s: %d goroutines more, %d commands, %d turns of another lock", took, most.Load()-idle, commands, turns.Load())
	if bound := 100 + 300*int64(took/time.Second+1); commands > bound {
		t.Errorf("%d commands, want at most %d", commands, bound)
	}
	locktest.WantAlive(t, ctx)
	locktest.MustRelease(t, hold)
	locktest.MustRelease(t, (<-got).Hold)
}

// A holder finds the loss of its lock by a message, even in a flood of other messages.
func TestFlood_LossIsFound(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		got := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		b.AwaitListeners("k", 1)
		slow := proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "renew", "k")))
		flood(b, "k", 5)
		<-slow.Hit() // the question arrives while the lock still exists
		b.Take("k", locktest.Stranger, time.Hour)
		flood(b, "k", 5)
		slow.Release()
		locktest.Pass(100 * time.Millisecond)
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		locktest.WantErr(t, (<-got).Err, core.ErrNotAcquired)
	})
}

// A subscription connection falls silent without being closed. The client notices that within seconds, and messages
// wake waiters again.
func TestSubscription_SilentConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"SUBSCRIBE", "PING"} {
		locktest.ParallelBubble(t, "from the first "+from, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			silent := proxy.HoldReply(faultproxy.Once(faultproxy.Command(from))) // and all replies behind it
			asked := proxy.Watch(faultproxy.Command("SUBSCRIBE"))
			b.Take("k", locktest.Stranger, time.Hour)
			at := locktest.AcquiredAt(t, locks, "k")
			<-silent.Hit()
			before := asked.Hits()
			locktest.Pass(5 * time.Second)
			if n := asked.Hits() - before; n < 1 {
				t.Errorf("%d subscriptions in five seconds of silence, want at least 1", n)
			}
			b.Free("k")
			freed := time.Now()
			if took := (<-at).Sub(freed); took != 0 {
				t.Errorf("woken after %s, want at once", took)
			}
		})
	}
}

// The server ends a subscription by itself. The client subscribes again at once, and the waiter attempts, because it
// may have missed a message.
func TestSubscription_EndedByTheServerIsRenewed(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		server := newInterceptor(b)
		proxy, rdb := faultproxy.Around(t, server.rdb)
		locks := locktest.NewClient(t, rdb)
		b.Take("k", locktest.Stranger, time.Hour)
		at := locktest.AcquiredAt(t, locks, "k")
		locktest.Pass(10 * time.Millisecond)
		b.AwaitListeners("k", 1)
		attempts, asked := proxy.Watch(locktest.Scripts), proxy.Watch(faultproxy.Command("SUBSCRIBE"))
		locktest.Must(t, server.endSubscription(locktest.ChannelOf("k")))
		synctest.Wait()
		if asked.Hits() != 1 || attempts.Hits() == 0 {
			t.Errorf("%d subscriptions and %d attempts after the end of a subscription, want one and at least one", asked.Hits(), attempts.Hits())
		}
		b.Free("k")
		<-at
	})
}

// A hundred waiters need no more connections than one waiter: they share the subscription connection and the
// pipeline.
func TestQueue_WaitersCostNoConnections(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks, opened := locktest.NewClient(t, rdb), proxy.Watch(faultproxy.Command("hello"))
		ctx, cancel := context.WithCancel(t.Context())
		b.Take("k", locktest.Stranger, time.Hour)
		first := locktest.KeepBusy(ctx, locks, "k", 1)
		locktest.Pass(time.Minute)
		before := opened.Hits()
		rest := locktest.KeepBusy(ctx, locks, "k", 99)
		locktest.Pass(time.Minute)
		locktest.AwaitWaiters(t, locks, 100)
		if now := opened.Hits(); now != before || before == 0 {
			t.Errorf("%d connections with one waiter and %d with a hundred", before, now)
		}
		cancel()
		<-first
		<-rest
	})
}

// On a real server a hundred waiters need only a few more connections than one waiter, even if each waits for another
// key. The additional connections are for commands that overlap.
func TestQueue_WaitersCostFewConnectionsOnAServer(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]func(i int) string{
		"one key":    func(int) string { return "k" },
		"a key each": func(i int) string { return fmt.Sprint("k", i) },
	} {
		locktest.Parallel(t, name, func(t *testing.T) {
			b := locktest.Real(t)
			locks := b.Locks()
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			add := func(i int) {
				b.Take(key(i), locktest.Stranger, time.Hour)
				group.Go(func() { <-locktest.KeepBusy(ctx, locks, key(i), 1) })
				locktest.AwaitWaiters(t, locks, i+1)
				b.AwaitListeners(key(i), 1)
			}
			add(0)
			before := countConnections(t, b)
			for i := range 99 {
				add(i + 1)
			}
			if during := countConnections(t, b); during > before+5 || before < 3 { // this connection, an attempt, the subscription
				t.Errorf("%d connections with one waiter and %d with a hundred", before, during)
			}
			cancel()
			group.Wait()
		})
	}
}

// countConnections returns the largest number of connections during more than a poll interval.
func countConnections(t *testing.T, b *locktest.Redis) (most int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(1200 * time.Millisecond); time.Now().Before(end); <-tick.C {
		most = max(most, strings.Count(b.ClientList(t.Context()).Val(), "\n"))
	}
	return most
}

// interceptor is a client whose connections a test can use to send messages to its subscriber.
type interceptor struct {
	rdb        *redis.Client
	subscriber net.Conn // the end on the side of the server
}

func newInterceptor(b *locktest.Redis) *interceptor {
	b.T.Helper()
	m := &interceptor{}
	opts := *b.Options()
	dial := opts.Dialer
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		server, err := dial(context.WithoutCancel(ctx), network, addr)
		if err != nil {
			return nil, err
		}
		near, far := mempipe.New()
		go func() { _, _ = io.Copy(far, server); _ = far.Close() }()
		go func() { m.carry(server, far); _ = server.Close() }()
		return near, nil
	}
	m.rdb = redis.NewClient(&opts)
	b.T.Cleanup(func() { _ = m.rdb.Close() })
	return m
}

// carry passes commands on, and remembers the connection that has subscribed.
func (m *interceptor) carry(server io.Writer, client net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := client.Read(buf)
		if bytes.Contains(bytes.ToLower(buf[:n]), []byte("\r\nsubscribe\r\n")) {
			m.subscriber = client
		}
		if _, failed := server.Write(buf[:n]); failed != nil || err != nil {
			return
		}
	}
}

// endSubscription notifies the subscriber that its subscription has ended.
func (m *interceptor) endSubscription(channel string) error {
	_, err := fmt.Fprintf(m.subscriber, ">3\r\n$11\r\nunsubscribe\r\n$%d\r\n%s\r\n:0\r\n", len(channel), channel)
	return err
}
