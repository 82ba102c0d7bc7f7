package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wakeup"
	"github.com/interlock-go/interlock/core/redistest"
)

// listener returns a client with a waiter that has subscribed.
func listener(t *testing.T, prepare ...func(*Client)) (*Client, *queue.Waiter, *wakeup.Subscription) {
	t.Helper()
	c, err := New(redistest.New(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	for _, p := range prepare {
		p(c)
	}
	w := &queue.Waiter{Wish: queue.Wish{Since: time.Now()}}
	if err := c.queues.Join("k", w, time.Now()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.queues.Leave(w, time.Now()) })
	listens := c.listen(t, w)
	for c.queues.Next(w, time.Now()).Attempt {
		// the subscription is new, and its confirmation has woken the waiter
	}
	return c, w, listens
}

// listen makes the queue of w subscribe.
func (c *Client) listen(t *testing.T, w *queue.Waiter) *wakeup.Subscription {
	t.Helper()
	if !c.queues.NeedsSubscription(w) {
		t.Error("no subscription is needed")
	}
	listens := c.wakeups.Subscribe(t.Context(), wakeup.Topic{Key: "k"}, redisstore.Channel("k"))
	c.queues.Subscribe(w, listens)
	synctest.Wait()
	return listens
}

// finalConnector makes subscription connections that are not replaced when they are lost.
type finalConnector struct {
	subscribing

	opened chan wakeup.Connection
}

func (e finalConnector) Connect(ctx context.Context, key string) (wakeup.Connection, error) {
	connection, err := e.subscribing.Connect(ctx, key)
	e.opened <- connection
	return finalConnection{connection}, err
}

// finalConnection reports that it is sharded, as a connection to a master of a Cluster does.
type finalConnection struct{ wakeup.Connection }

func (finalConnection) Sharded() bool { return true }

// A closed subscription connection sends no more notifications. The waiters that relied on it attempt, and then
// subscribe elsewhere.
func TestSubscription_CloseWakesTheWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opened := make(chan wakeup.Connection, 2)
		c, w, before := listener(t, func(c *Client) {
			c.wakeups = wakeup.New(wakeup.Config{Wire: finalConnector{subscribing{&c.components}, opened}, Notify: c.handleWakeup, Spawn: c.spawn})
		})
		if err := (<-opened).Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // of the bubble
		synctest.Wait()
		if !c.queues.Next(w, time.Now()).Attempt {
			t.Error("the waiter was not woken")
		}
		if now := c.listen(t, w); now == before || !before.Dead() || !now.Confirmed() || !c.queues.Listens("k") {
			t.Error("the waiter does not listen elsewhere")
		}
	})
}
