package wakeup_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wakeup"
)

// The confirmation of a subscription and each message wake the waiter.
func TestSubscriber_Wakes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s := b.subscribe("k")
		b.wantSaid("k confirmed")
		if !s.Confirmed() || s.Dead() {
			t.Errorf("confirmed: %v, dead: %v", s.Confirmed(), s.Dead())
		}
		c := b.connection(0)
		c.publish("k", redisstore.Message)
		c.publish("other", redisstore.Message)
		c.publish("k", redisstore.Message)
		b.wantSaid("k message", "k message")
	})
}

// Subscribe does not wait for Redis.
func TestSubscriber_ConfirmedLater(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.set(func(w *wire) { w.answers = false })
		s := b.subscribe("k")
		b.wantSaid()
		if s.Confirmed() {
			t.Error("confirmed without an answer")
		}
	})
}

// Users of one key share a subscription, and keys share a connection. One command requests all channels that
// are wanted at the same time.
func TestSubscriber_Shares(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.opening = make(chan struct{})
		first, second := b.subscribe("k"), b.subscribe("k")
		if first != second || first.Users() != 2 {
			t.Errorf("%d users, want 2 of one subscription", first.Users())
		}
		for i := range 10 {
			b.subscribe(fmt.Sprint("k", i))
		}
		close(b.opening)
		if n := len(b.connection(0).commands()); n != 1 || b.attempted != 1 || b.Connections() != 1 {
			t.Errorf("%d commands on %d connections", n, b.attempted)
		}
		if n := b.connection(0).subscribed(); n != 11 {
			t.Errorf("%d channels, want 11", n)
		}
	})
}

// A subscription outlives its last user for a while, and a waiter that returns in that time reuses it. The
// connection is closed when its last subscription ends.
func TestSubscription_Lingers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s, other := b.subscribe("k"), b.subscribe("other")
		b.wantSaid("k confirmed", "other confirmed")
		s.Unsubscribe()
		pass(wakeup.Linger - 2*time.Second)
		if again := b.subscribe("k"); again != s || !s.Confirmed() {
			t.Error("got a new subscription while the old one lingers")
		}
		s.Unsubscribe()
		pass(wakeup.Linger + 1100*time.Millisecond)
		c := b.connection(0)
		if n := c.subscribed(); n != 1 || c.isClosed() {
			t.Errorf("%d channels, closed: %v, want only the used channel", n, c.isClosed())
		}
		if !s.Dead() || other.Dead() {
			t.Error("the closed subscription counts as a working one")
		}
		c.publish("k", redisstore.Message)
		b.wantSaid()
		other.Unsubscribe()
		pass(wakeup.Linger + 1100*time.Millisecond)
		if !c.isClosed() || b.Connections() != 0 {
			t.Error("the connection is kept without a user")
		}
		b.wantSaid()
		b.subscribe("k")
		b.wantSaid("k confirmed")
	})
}

// A subscription lasts as long as it has a user.
func TestSubscription_SeveralUsers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s := b.subscribe("k")
		b.subscribe("k")
		s.Unsubscribe()
		pass(time.Minute)
		if b.connection(0).subscribed() != 1 || !s.Confirmed() {
			t.Error("the subscription ended although it has a user")
		}
	})
}

func TestSubscription_Unsubscribe_Nil(t *testing.T) {
	t.Parallel()
	var s *wakeup.Subscription
	s.Unsubscribe()
}

// A lost connection is restored, and all waiters are woken when their subscriptions are confirmed again.
func TestConnection_Lost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s := b.subscribe("k1")
		b.subscribe("k2")
		b.wantSaid("k1 confirmed", "k2 confirmed")
		b.connection(0).fail()
		synctest.Wait()
		if s.Confirmed() || s.Dead() {
			t.Errorf("confirmed: %v, dead: %v, on a lost connection", s.Confirmed(), s.Dead())
		}
		b.wantSaid("k1 interrupted", "k2 interrupted")
		pass(10 * time.Millisecond)
		b.wantSaid("k1 confirmed", "k2 confirmed")
		if b.attempted != 1 || !s.Confirmed() {
			t.Errorf("%d connections", b.attempted)
		}
	})
}

// The pings detect that a connection stays open but delivers nothing. The waiter is notified once.
func TestConnection_Silent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s := b.subscribe("k")
		pass(10 * time.Second)
		b.wantSaid("k confirmed")
		if n := b.connection(0).pinged(); n != 10 {
			t.Errorf("%d pings in ten seconds", n)
		}
		b.set(func(w *wire) { w.answers = false })
		pass(3100 * time.Millisecond)
		b.wantSaid("k interrupted")
		if s.Confirmed() {
			t.Error("confirmed although nothing arrives")
		}
		pass(10 * time.Second)
		b.wantSaid()
		b.set(func(w *wire) { w.answers = true })
		pass(4 * time.Second)
		b.wantSaid("k confirmed")
	})
}

// A rejected channel is requested again once a second, in a separate command. Other channels are not
// affected.
func TestConnection_Rejected(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.set(func(w *wire) { w.rejects[channel("k1")] = true })
		b.subscribe("k1")
		b.subscribe("k2")
		pass(10 * time.Millisecond)
		b.wantSaid("k2 confirmed")
		c := b.connection(0)
		c.commands()
		pass(5 * time.Second)
		if asked := c.commands(); len(asked) != 5 || len(asked[0]) != 1 {
			t.Errorf("in five seconds the requests were %q", asked)
		}
		c.publish("k2", redisstore.Message)
		b.wantSaid("k2 message")
		b.set(func(w *wire) { clear(w.rejects) })
		pass(time.Second)
		b.wantSaid("k1 confirmed")
		c.commands()
		pass(5 * time.Second)
		if asked := c.commands(); len(asked) != 0 {
			t.Errorf("requested again although confirmed: %q", asked)
		}
	})
}

// However many channels are rejected, only a few commands per second request them again.
func TestConnection_ManyRejected(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		for i := range 100 {
			key := fmt.Sprint("k", i)
			b.set(func(w *wire) { w.rejects[channel(key)] = true })
			b.subscribe(key)
		}
		pass(900 * time.Millisecond)
		c := b.connection(0)
		c.commands()
		pass(time.Second)
		if n := len(c.commands()); n != 20 {
			t.Errorf("%d commands in a second, want 20", n)
		}
	})
}

// The server may drop a subscription by itself. That does not count as a message. The channel is requested
// again at once, and its confirmation wakes the waiter.
func TestConnection_DroppedByTheServer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s := b.subscribe("k")
		b.wantSaid("k confirmed")
		c := b.connection(0)
		c.commands()
		c.publish("k", redisstore.Unsubscribed)
		b.wantSaid("k interrupted", "k confirmed")
		if n := len(c.commands()); n != 1 || !s.Confirmed() {
			t.Errorf("%d subscribe commands after the server dropped the subscription", n)
		}
	})
}

// An unsubscribe that arrives before the confirmation belongs to an earlier use of the channel, so the
// channel is not requested again.
func TestConnection_DroppedBeforeItIsConfirmed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.set(func(w *wire) { w.answers = false })
		b.subscribe("k")
		c := b.connection(0)
		c.commands()
		c.publish("k", redisstore.Unsubscribed)
		b.wantSaid()
		if n := len(c.commands()); n != 1 {
			t.Errorf("%d subscribe commands after the server dropped the subscription", n)
		}
	})
}

// A connection that should be replaced closes within a second, whatever arrives on it. Its waiters are notified and
// subscribe on another connection, which stays.
func TestConnection_ShouldReplace(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s := b.subscribe("k")
		b.wantSaid("k confirmed")
		pass(time.Minute)
		if b.attempted != 1 {
			t.Fatalf("%d connections within a minute, want 1", b.attempted)
		}
		b.set(func(w *wire) { w.era++ })
		pass(1100 * time.Millisecond)
		b.wantSaid("k interrupted", "k closed")
		if !s.Dead() || !b.connection(0).isClosed() || b.Connections() != 0 {
			t.Errorf("dead: %v, closed: %v, %d connections", s.Dead(), b.connection(0).isClosed(), b.Connections())
		}
		s.Unsubscribe()
		again := b.subscribe("k")
		b.wantSaid("k confirmed")
		b.connection(1).publish("k", redisstore.Message)
		pass(time.Minute)
		b.wantSaid("k message")
		if again.Dead() || b.attempted != 2 {
			t.Errorf("dead: %v, %d connections, want 2", again.Dead(), b.attempted)
		}
	})
}

// With sharded channels there is a connection for each node.
func TestConnection_Sharded_OnePerNode(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.sharded = true
		for _, key := range []string{"a:1", "a:2", "b:1"} {
			b.subscribe(key)
		}
		b.wantSaid("a:1 confirmed", "a:2 confirmed", "b:1 confirmed")
		if b.Connections() != 2 || b.attempted != 2 {
			t.Errorf("%d connections, want 2", b.attempted)
		}
	})
}

// With sharded channels a connection is closed when it is lost or when its slot has moved. Its waiters are
// woken and subscribe on another connection.
func TestConnection_Sharded_Closes(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*connection){
		"lost":  (*connection).fail,
		"moved": func(c *connection) { c.publish("a:1", redisstore.Unsubscribed) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				b.sharded = true
				s, other := b.subscribe("a:1"), b.subscribe("b:1")
				b.wantSaid("a:1 confirmed", "b:1 confirmed")
				end(b.nodeConnection("a:1"))
				b.wantSaid("a:1 interrupted")
				pass(200 * time.Millisecond)
				b.wantSaid("a:1 closed")
				if !s.Dead() || s.Confirmed() || other.Dead() {
					t.Errorf("dead: %v and %v, want only the lost one", s.Dead(), other.Dead())
				}
				s.Unsubscribe()
				if again := b.subscribe("a:1"); again == s {
					t.Error("subscribed on a closed connection")
				}
				b.wantSaid("a:1 confirmed")
			})
		})
	}
}

// nodeConnection returns the open connection with the channel of key.
func (b *bed) nodeConnection(key string) *connection {
	synctest.Wait()
	for _, c := range b.opened {
		if !c.isClosed() && len(c.channels) > 0 && c.channels[0] == channel(key) {
			return c
		}
	}
	b.t.Fatalf("no connection has %s", key)
	return nil
}

// If this process unsubscribes from a sharded channel, the connection stays open.
func TestConnection_Sharded_Unsubscribed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.sharded = true
		b.subscribe("a:1").Unsubscribe()
		kept := b.subscribe("a:2")
		pass(wakeup.Linger + 2*time.Second)
		b.wantSaid("a:1 confirmed", "a:2 confirmed")
		if kept.Dead() || b.connection(0).subscribed() != 1 {
			t.Error("the connection was closed because of an unsubscribed channel")
		}
	})
}

// While a node cannot be reached, there is one attempt to connect per second, although waiters subscribe
// again and again. If the node was reachable for a while before that, the first attempts follow soon after
// each other.
func TestSubscriber_CannotConnect(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.broken = errLost
		resubscribe := func(lasts time.Duration) (attempted int) {
			before := b.attempted
			for end := time.Now().Add(lasts); time.Now().Before(end); pass(time.Millisecond) {
				if s := b.subscribe("k"); s.Dead() {
					t.Fatal("dead before the first attempt")
				}
			}
			return b.attempted - before
		}
		if n := resubscribe(3 * time.Second); n > 12 || n < 9 {
			t.Errorf("%d attempts in the first seconds", n)
		}
		if n := resubscribe(time.Minute); n > 81 || n < 59 {
			t.Errorf("%d attempts in a minute", n)
		}
		b.set(func(w *wire) { w.broken = nil })
		resubscribe(10 * time.Second)
		b.set(func(w *wire) { w.broken, w.sharded = errLost, true })
		b.connection(0).fail()
		if n := resubscribe(time.Second); n < 7 {
			t.Errorf("%d attempts in the second after it was healthy", n)
		}
	})
}

// If each connection is lost as soon as it is made, a new one is made about once a second. No command is sent
// until a connection lasts. Then every channel that is still wanted is subscribed.
func TestConnection_LostAgainAndAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.subscribe("k1")
		b.wantSaid("k1 confirmed")
		c := b.connection(0)
		c.commands()
		b.set(func(w *wire) { w.drops = true })
		c.fail()
		pass(3 * time.Second)
		if b.made > 12 || b.made < 9 {
			t.Errorf("%d connections in the first seconds", b.made)
		}
		before, pings := b.made, c.pinged()
		b.subscribe("k2")
		pass(time.Minute)
		if n := b.made - before; n > 81 || n < 59 {
			t.Errorf("%d connections in a minute", n)
		}
		if n, asked := c.pinged()-pings, c.commands(); n > 10 || len(asked) > 0 {
			t.Errorf("%d pings and the subscriptions %q on a connection that is down", n, asked)
		}
		b.wantSaid("k1 interrupted")
		b.set(func(w *wire) { w.drops = false })
		pass(2 * time.Second)
		b.wantSaid("k1 confirmed", "k2 confirmed")
		c.fail()
		pass(10 * time.Millisecond)
		b.wantSaid("k1 interrupted", "k2 interrupted")
	})
}

// Close ends all goroutines and closes the connections.
func TestSubscriber_Close(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s := b.subscribe("k")
		synctest.Wait()
		b.end()
		b.workers.Wait()
		if !b.connection(0).isClosed() || !s.Dead() {
			t.Error("the connection outlives its owner")
		}
		if late := b.subscribe("k"); late.Confirmed() {
			t.Error("confirmed after Close")
		}
	})
}

// After random events in any order, once all faults have ended, users of a subscription that is not dead get
// its messages, and nothing is kept without users.
func TestSubscriber_Model(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				m := &model{bed: b, random: rand.New(rand.NewPCG(seed, 1)), used: map[string][]*wakeup.Subscription{}}
				b.sharded = seed%2 == 0
				for range 300 {
					m.event()
					pass(time.Duration(m.random.IntN(400)) * time.Millisecond)
				}
				m.settle()
			})
		})
	}
}

// model contains the users of each subscription.
type model struct {
	*bed

	random *rand.Rand
	used   map[string][]*wakeup.Subscription
}

var modelKeys = []string{"a:1", "a:2", "b:1", "b:2", "c:1"}

func (m *model) event() {
	key := modelKeys[m.random.IntN(len(modelKeys))]
	switch m.random.IntN(8) {
	case 0, 1:
		m.used[key] = append(m.used[key], m.subscribe(key))
	case 2, 3:
		if list := m.used[key]; len(list) > 0 {
			list[0].Unsubscribe()
			m.used[key] = list[1:]
		}
	case 4:
		m.set(func(w *wire) { w.rejects[channel(key)] = !w.rejects[channel(key)] })
	case 5:
		m.set(func(w *wire) { w.answers = !w.answers })
	case 6:
		m.somewhere((*connection).fail)
	case 7:
		m.somewhere(func(c *connection) { c.publish(key, redisstore.Unsubscribed) })
	}
}

func (m *model) somewhere(happens func(*connection)) {
	synctest.Wait()
	if len(m.opened) == 0 {
		return
	}
	if c := m.opened[m.random.IntN(len(m.opened))]; !c.isClosed() {
		happens(c)
	}
}

// settle ends all faults, replaces dead subscriptions, and checks which users are woken.
func (m *model) settle() {
	m.t.Helper()
	m.set(func(w *wire) { w.answers = true; clear(w.rejects) })
	pass(10 * time.Second)
	for _, key := range modelKeys {
		for i, s := range m.used[key] {
			if s.Dead() {
				s.Unsubscribe()
				m.used[key][i] = m.subscribe(key)
			}
		}
	}
	pass(2 * time.Second)
	m.wantAllWoken()
	for _, list := range m.used {
		for _, s := range list {
			s.Unsubscribe()
		}
	}
	pass(wakeup.Linger + 2*time.Second)
	if n := m.Connections(); n != 0 {
		m.t.Errorf("%d connections are kept without a user", n)
	}
}

func (m *model) wantAllWoken() {
	m.t.Helper()
	m.said.Lock()
	m.words = nil
	m.said.Unlock()
	var want []string
	for _, key := range modelKeys {
		if len(m.used[key]) == 0 {
			continue
		}
		want = append(want, key+" message")
		for _, s := range m.used[key] {
			if !s.Confirmed() || s.Users() != len(m.used[key]) {
				m.t.Errorf("%s: confirmed: %v, %d users, want %d", key, s.Confirmed(), s.Users(), len(m.used[key]))
			}
		}
		m.publishTo(key)
	}
	m.wantSaid(want...)
}

// publishTo delivers a message on the connection that has the channel of key.
func (m *model) publishTo(key string) {
	for _, c := range m.opened {
		c.mu.Lock()
		for _, ch := range c.channels {
			if ch == channel(key) && !c.isClosed() {
				c.publish(key, redisstore.Message)
			}
		}
		c.mu.Unlock()
	}
}
