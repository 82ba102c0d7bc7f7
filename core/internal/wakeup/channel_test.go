package wakeup_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wakeup"
)

// shareChannel subscribes to the channel "k" for a key.
func (b *bed) shareChannel(key string) *wakeup.Subscription {
	return b.Subscribe(b.t.Context(), wakeup.Topic{Key: key}, channel("k"))
}

// Topics that share a channel have separate subscriptions. Each event of the channel reaches all of them, and the
// channel stays until the last of them ends.
func TestSubscriber_TopicsShareAChannel(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		x, y := b.shareChannel("x"), b.shareChannel("y")
		if x == y {
			t.Fatal("two topics have one subscription")
		}
		b.wantSaid("x confirmed", "y confirmed")
		c := b.connection(0)
		if n := c.subscribed(); n != 1 || len(c.commands()) != 1 {
			t.Errorf("%d channels, want 1, requested once", n)
		}
		c.publish("k", redisstore.Message)
		b.wantSaid("x message", "y message")

		x.Unsubscribe()
		pass(wakeup.Linger + 1100*time.Millisecond)
		if !x.Dead() || y.Dead() || c.subscribed() != 1 {
			t.Errorf("after one topic ended: dead %v and %v, %d channels", x.Dead(), y.Dead(), c.subscribed())
		}
		c.publish("k", redisstore.Message)
		b.wantSaid("y message")

		c.fail()
		b.wantSaid("y interrupted")
		pass(10 * time.Millisecond)
		b.wantSaid("y confirmed")
		b.end()
		b.wantSaid("y interrupted", "y closed")
		if !y.Dead() {
			t.Error("a subscription lives on a closed connection")
		}
	})
}

// A topic that joins a confirmed channel is confirmed at once and notified, because it may have missed a message. A
// further user of the topic is not notified.
func TestSubscriber_JoinsAConfirmedChannel(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.shareChannel("x")
		b.wantSaid("x confirmed")
		y := b.shareChannel("y")
		if !y.Confirmed() {
			t.Error("not confirmed, and no answer will come")
		}
		b.wantSaid("y confirmed")
		if b.shareChannel("y") != y {
			t.Error("one topic has two subscriptions")
		}
		b.wantSaid()
	})
}

// If the server unsubscribes a channel, all its topics are interrupted, and the channel is requested once.
func TestSubscriber_ServerDropsASharedChannel(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.shareChannel("x")
		b.shareChannel("y")
		b.wantSaid("x confirmed", "y confirmed")
		c := b.connection(0)
		c.commands()
		c.publish("k", redisstore.Unsubscribed)
		b.wantSaid("x interrupted", "x confirmed", "y interrupted", "y confirmed")
		if asked := c.commands(); len(asked) != 1 || len(asked[0]) != 1 {
			t.Errorf("asked for %q, want the channel once", asked)
		}
	})
}
