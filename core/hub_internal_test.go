package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/redistest"
)

// listener is a client with a waiter that has subscribed.
func listener(t *testing.T) (*Client, *waiter) {
	t.Helper()
	c, err := New(redistest.New(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
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

// A subscription connection that has ended tells nobody anything: those who relied on
// it look, and then listen elsewhere.
func TestFeed_EndWakesTheWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, w := listener(t)
		before := w.line.topic
		before.feed.end()
		if !c.lines.next(w, time.Now()).attempt {
			t.Error("the waiter was not woken")
		}
		c.lines.subscribe(t.Context(), w)
		synctest.Wait()
		if now := w.line.topic; now == before || !now.confirmed.Load() {
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
