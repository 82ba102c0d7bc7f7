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
	"github.com/interlock-go/interlock/core/internal/mempipe"
)

// Nothing comes through on a subscription connection any more, and nobody closes it:
// that is noticed within seconds, and messages wake again.
func TestSubscription_SilentConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"SUBSCRIBE", "PING"} {
		parallelBubble(t, "from the first "+from, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			silent := proxy.HoldReply(faultproxy.Once(faultproxy.Command(from))) // and all behind it
			asked := proxy.Watch(faultproxy.Command("SUBSCRIBE"))
			b.take("k", stranger, time.Hour)
			at := acquiredAt(t, locks, "k")
			<-silent.Hit()
			before := asked.Hits()
			pass(5 * time.Second)
			if n := asked.Hits() - before; n < 1 {
				t.Errorf("%d subscriptions in five seconds of silence", n)
			}
			b.free("k")
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
	inBubble(t, func(t *testing.T, b *bed) {
		server := b.meddled()
		proxy, rdb := faultproxy.Around(t, server.rdb)
		locks := locksOn(t, rdb)
		b.take("k", stranger, time.Hour)
		at := acquiredAt(t, locks, "k")
		pass(10 * time.Millisecond)
		b.listeners("k", 1)
		attempts, asked := proxy.Watch(scripts), proxy.Watch(faultproxy.Command("SUBSCRIBE"))
		must(t, server.endSubscription(channelOf("k")))
		synctest.Wait()
		if asked.Hits() != 1 || attempts.Hits() == 0 {
			t.Errorf("%d subscriptions and %d attempts after the end of one", asked.Hits(), attempts.Hits())
		}
		b.free("k")
		<-at
	})
}

// A hundred waiters need no more connections than one: they share one subscription
// connection and the way to Redis.
func TestQueue_WaitersCostNoConnections(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks, opened := locksOn(t, rdb), proxy.Watch(faultproxy.Command("hello"))
		ctx, cancel := context.WithCancel(t.Context())
		b.take("k", stranger, time.Hour)
		first := busyCallers(ctx, locks, "k", 1)
		pass(time.Minute)
		before := opened.Hits()
		rest := busyCallers(ctx, locks, "k", 99)
		pass(time.Minute)
		waiters(t, locks, 100)
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
		parallel(t, name, func(t *testing.T) {
			b := serverBed(t)
			locks := b.locks()
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			add := func(i int) {
				b.take(key(i), stranger, time.Hour)
				group.Go(func() { <-busyCallers(ctx, locks, key(i), 1) })
				waiters(t, locks, i+1)
				b.listeners(key(i), 1)
			}
			add(0)
			before := b.connections(t)
			for i := range 99 {
				add(i + 1)
			}
			if during := b.connections(t); during > before+5 || before < 3 { // this one, an attempt, the subscription
				t.Errorf("%d connections with one waiter, %d with a hundred", before, during)
			}
			cancel()
			group.Wait()
		})
	}
}

// connections is how many there are at most, for longer than a poll interval.
func (b *bed) connections(t *testing.T) (most int) {
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

func (b *bed) meddled() *meddled {
	b.t.Helper()
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
	b.t.Cleanup(func() { _ = m.rdb.Close() })
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
