package core_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/mempipe"
)

// Nothing comes through on a subscription connection any more, and nobody closes it:
// that is noticed within seconds, and messages wake again.
func TestSubscription_SilentConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"SUBSCRIBE", "PING"} {
		locktest.ParallelBubble(t, "from the first "+from, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			silent := proxy.HoldReply(faultproxy.Once(faultproxy.Command(from))) // and all behind it
			asked := proxy.Watch(faultproxy.Command("SUBSCRIBE"))
			b.Take("k", locktest.Stranger, time.Hour)
			at := locktest.AcquiredAt(t, locks, "k")
			<-silent.Hit()
			before := asked.Hits()
			locktest.Pass(5 * time.Second)
			if n := asked.Hits() - before; n < 1 {
				t.Errorf("%d subscriptions in five seconds of silence", n)
			}
			b.Free("k")
			freed := time.Now()
			if took := (<-at).Sub(freed); took != 0 {
				t.Errorf("woken after %s", took)
			}
		})
	}
}

// The server may end a subscription by itself. It is asked for again at once, and the
// waiter looks: it may have missed a message.
func TestSubscription_EndedByTheServerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		server := newMeddled(b)
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
			t.Errorf("%d subscriptions and %d attempts after the end of one", asked.Hits(), attempts.Hits())
		}
		b.Free("k")
		<-at
	})
}

// A hundred waiters need no more connections than one: they share one subscription
// connection and the way to Redis.
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
			t.Errorf("%d connections with one waiter, %d with a hundred", before, now)
		}
		cancel()
		<-first
		<-rest
	})
}

// On a server, where commands may meet, it is a few more, also if each of a hundred waits for a
// key of its own.
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
			before := countConnections(b, t)
			for i := range 99 {
				add(i + 1)
			}
			if during := countConnections(b, t); during > before+5 || before < 3 { // this one, an attempt, the subscription
				t.Errorf("%d connections with one waiter, %d with a hundred", before, during)
			}
			cancel()
			group.Wait()
		})
	}
}

// connections is how many there are at most, for longer than a poll interval.
func countConnections(b *locktest.Redis, t *testing.T) (most int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(1200 * time.Millisecond); time.Now().Before(end); <-tick.C {
		most = max(most, strings.Count(b.ClientList(t.Context()).Val(), "\n"))
	}
	return most
}

// meddled is the way to a server on which subscribers can hear more than it says.
type meddled struct {
	rdb        *redis.Client
	subscriber net.Conn // the end of the server's side
}

func newMeddled(b *locktest.Redis) *meddled {
	b.T.Helper()
	m := &meddled{}
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

// carry passes commands on, and remembers who has subscribed.
func (m *meddled) carry(server io.Writer, client net.Conn) {
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

// endSubscription notifies the subscriber that it is none any more.
func (m *meddled) endSubscription(channel string) error {
	_, err := fmt.Fprintf(m.subscriber, ">3\r\n$11\r\nunsubscribe\r\n$%d\r\n%s\r\n:0\r\n", len(channel), channel)
	return err
}
