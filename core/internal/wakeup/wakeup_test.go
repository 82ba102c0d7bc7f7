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

// A waiter is woken when Redis has confirmed the subscription, and by each message.
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

// Users of one key share a subscription, and keys share a connection. Channels that are asked for at
// once travel together.
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

// A subscription outlives its last user for a while. A waiter that comes back in that time has it at
// once. When nothing is subscribed any more, the connection is closed.
func TestSubscription_Lingers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s, other := b.subscribe("k"), b.subscribe("other")
		b.wantSaid("k confirmed", "other confirmed")
		s.Unsubscribe()
		pass(wakeup.Linger - 2*time.Second)
		if again := b.subscribe("k"); again != s || !s.Confirmed() {
			t.Error("another subscription while the old one lingers")
		}
		s.Unsubscribe()
		pass(wakeup.Linger + 1100*time.Millisecond)
		c := b.connection(0)
		if n := c.subscribed(); n != 1 || c.isClosed() {
			t.Errorf("%d channels, closed: %v, want the used one", n, c.isClosed())
		}
		if !s.Dead() || other.Dead() {
			t.Error("a queue that remembers the closed subscription takes it for a working one")
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

// A subscription with a user is kept, however long that takes.
func TestSubscription_SeveralUsers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s := b.subscribe("k")
		b.subscribe("k")
		s.Unsubscribe()
		pass(time.Minute)
		if b.connection(0).subscribed() != 1 || !s.Confirmed() {
			t.Error("given up under its user")
		}
	})
}

func TestSubscription_Unsubscribe_Nil(t *testing.T) {
	t.Parallel()
	var s *wakeup.Subscription
	s.Unsubscribe()
}

// A lost connection is made again, and all waiters look when that is confirmed.
func TestConnection_Lost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		s := b.subscribe("k1")
		b.subscribe("k2")
		b.wantSaid("k1 confirmed", "k2 confirmed")
		b.connection(0).fail()
		synctest.Wait()
		if s.Confirmed() || s.Dead() {
			t.Errorf("confirmed: %v, dead: %v, of a lost connection", s.Confirmed(), s.Dead())
		}
		b.wantSaid("k1 interrupted", "k2 interrupted")
		pass(10 * time.Millisecond)
		b.wantSaid("k1 confirmed", "k2 confirmed")
		if b.attempted != 1 || !s.Confirmed() {
			t.Errorf("%d connections", b.attempted)
		}
	})
}

// Nothing arrives any more, and neither side closes the connection. The pings show that, and it is
// reported once.
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
			t.Error("confirmed although nothing comes")
		}
		pass(10 * time.Second)
		b.wantSaid()
		b.set(func(w *wire) { w.answers = true })
		pass(4 * time.Second)
		b.wantSaid("k confirmed")
	})
}

// A rejected channel is asked for again once a second, in a separate command. The others go on.
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
			t.Errorf("in five seconds asked for %q", asked)
		}
		c.publish("k2", redisstore.Message)
		b.wantSaid("k2 message")
		b.set(func(w *wire) { clear(w.rejects) })
		pass(time.Second)
		b.wantSaid("k1 confirmed")
		c.commands()
		pass(5 * time.Second)
		if asked := c.commands(); len(asked) != 0 {
			t.Errorf("asked for again although confirmed: %q", asked)
		}
	})
}

// However many channels are rejected, few commands a second ask for them.
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

// The server may drop a subscription by itself, which does not count as a message. It is asked for
// again at once, and the confirmation closes the gap.
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
			t.Errorf("%d subscriptions after the end of one", n)
		}
	})
}

// A subscription that is not confirmed cannot be interrupted: the server obeys an earlier unsubscribe
// after a waiter has come back.
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
			t.Errorf("%d subscriptions after the end of one", n)
		}
	})
}

// An outlived connection closes within a second, whatever arrives on it. Its waiters learn that, and
// subscribe on another one, which stays.
func TestConnection_Outlived(t *testing.T) {
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

// With sharded channels a connection is closed when it is lost, or when its slot has moved. Its
// waiters look, and subscribe on another one.
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

// A channel that this process gives up is unsubscribed without consequences.
func TestConnection_Sharded_Unsubscribed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.sharded = true
		b.subscribe("a:1").Unsubscribe()
		kept := b.subscribe("a:2")
		pass(wakeup.Linger + 2*time.Second)
		b.wantSaid("a:1 confirmed", "a:2 confirmed")
		if kept.Dead() || b.connection(0).subscribed() != 1 {
			t.Error("the connection was closed with a channel that was given up")
		}
	})
}

// A node that cannot be reached is asked once a second, although waiters subscribe again and again.
// If it could be reached for a while, it is asked again soon.
func TestSubscriber_CannotConnect(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.broken = errLost
		resubscribe := func(lasts time.Duration) (attempted int) {
			before := b.attempted
			for end := time.Now().Add(lasts); time.Now().Before(end); pass(time.Millisecond) {
				if s := b.subscribe("k"); s.Dead() {
					t.Fatal("dead before there was an attempt")
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

// A connection that is lost as soon as it was made is made again about once a second. Until one
// lasts, nothing else is sent. Then every channel that is still wanted is subscribed.
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
			t.Errorf("%d pings, and subscriptions %q, on a connection that is down", n, asked)
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

// When its owner closes, all its goroutines end, and connections are closed.
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
			t.Error("confirmed after the end")
		}
	})
}

// After random events in any order: a user of a subscription that is not dead gets its messages when
// all is well again, and nothing is kept when there are no users.
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

// model has the users of each subscription.
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

// settle ends all trouble, replaces dead subscriptions, and checks which users are woken.
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

// publishTo makes a message arrive where the channel of key is subscribed.
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
