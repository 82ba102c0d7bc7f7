package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/wakeup"
	"github.com/interlock-go/interlock/core/redistest"
)

// listener is a client with a waiter that has subscribed.
func listener(t *testing.T, prepare ...func(*Client)) (*Client, *waiter) {
	t.Helper()
	c, err := New(redistest.New(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	for _, p := range prepare {
		p(c)
	}
	w := &waiter{req: &request{}, since: time.Now()}
	if err := c.lines.join("k", w); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.lines.leave(w) })
	c.lines.subscribe(t.Context(), w)
	synctest.Wait()
	for c.lines.next(w, time.Now()).attempt {
		// it is new, and was woken by the confirmation
	}
	return c, w
}

// passing is a way of subscriptions whose connections do not come back when they are lost.
type passing struct {
	wire

	opened chan wakeup.Connection
}

func (e passing) Connect(ctx context.Context, key string) (wakeup.Connection, error) {
	connection, err := e.wire.Connect(ctx, key)
	e.opened <- connection
	return final{connection}, err
}

// final is a connection like those to the masters of a Cluster.
type final struct{ wakeup.Connection }

func (final) Sharded() bool { return true }

// A subscription connection that is closed tells nobody anything: those who relied on
// it look, and then listen elsewhere.
func TestSubscription_CloseWakesTheWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opened := make(chan wakeup.Connection, 2)
		c, w := listener(t, func(c *Client) {
			c.wakeups = wakeup.New(wakeup.Config{Wire: passing{wire{c}, opened}, Woken: c.woken, Spawn: c.spawn})
		})
		before := w.line.subscription
		if err := (<-opened).Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // of the bubble
		synctest.Wait()
		if !c.lines.next(w, time.Now()).attempt {
			t.Error("the waiter was not woken")
		}
		c.lines.subscribe(t.Context(), w)
		synctest.Wait()
		if now := w.line.subscription; now == before || !before.Dead() || !now.Confirmed() {
			t.Error("the waiter does not listen elsewhere")
		}
	})
}

// PUBLISH counts the subscribers of its node, and this client is one of them. In a
// Cluster with classic pub/sub others may listen on other nodes.
func TestToldOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		listening, _ := listener(t)
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}) // nobody asks it
		t.Cleanup(func() { _ = rdb.Close() })
		cluster, err := New(rdb, WithPubSub(PubSubClassic))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cluster.Close(context.Background()) })
		for _, tt := range []struct {
			name   string
			client *Client
			key    string
			told   int
			want   bool
		}{
			{"nobody", listening, "other", 0, false},
			{"somebody", listening, "other", 1, true},
			{"only this client", listening, "k", 1, false},
			{"this client and another", listening, "k", 2, true},
			{"nobody on this node of a cluster", cluster, "k", 0, true},
		} {
			if got := tt.client.toldOthers(tt.key, tt.told); got != tt.want {
				t.Errorf("%s: got %v", tt.name, got)
			}
		}
	})
}
