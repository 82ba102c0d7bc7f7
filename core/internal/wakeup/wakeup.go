// Package wakeup listens for the messages that a lock was released: the subscriptions of this
// process, and their health. There is one connection per client, and one per master of a
// Cluster with sharded pub/sub.
//
// Who waits for a key subscribes to its channel and unsubscribes when it does not wait any
// more. Several may share one subscription, which lingers for 5 s after the last of them: a
// lock that was contended a moment ago will be again. A lane's, which is one waiter's, does not.
//
// One call runs upward: Woken. Guaranteed is that it is called for each message that arrives,
// for each confirmation by Redis, which closes the gap between an attempt and the
// subscription, and when messages may be missing. A connection that says nothing for 3 s,
// although it is sent a ping every second, is given up; what was subscribed on it is
// subscribed again, and so is, once a second, what the server has rejected. A node that refuses or
// closes connections again and again is asked about once a second. Not guaranteed is
// that a message arrives: it is a hint that somebody should look, and the poll of the waiters
// is what they rely on.
//
// Mutexes: the list of connections, then the subscriptions of one of them. They guard memory
// only; nothing is called under them.
package wakeup

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Wire is the way to Redis.
type Wire interface {
	// NodeOf names the node whose connection the channel of key belongs to: with sharded
	// pub/sub its master, else always the same.
	NodeOf(ctx context.Context, key string) string
	// Connect opens a connection to the node of key, without channels. Nothing is sent yet.
	Connect(ctx context.Context, key string) (Connection, error)
}

// Connection is one subscription connection. Receive is called by one goroutine, the rest by
// another.
type Connection interface {
	// Sharded reports whether the channels belong to slots. Then a connection that is lost is
	// not made again: the slots may be elsewhere by now.
	Sharded() bool
	// Outlived reports whether another connection should take its place: it may lead to a server that is not the
	// master any more, or its credentials are about to expire.
	Outlived() bool
	// Subscribe asks for channels. An event says whether it worked.
	Subscribe(ctx context.Context, channels []string)
	// Unsubscribe gives channels up.
	Unsubscribe(ctx context.Context, channels []string)
	// Ping makes the server answer.
	Ping(ctx context.Context)
	// Receive waits for the next event, at most for d. After an error the next call makes the
	// connection again, with all its channels.
	Receive(ctx context.Context, d time.Duration) (redisstore.Event, error)
	// Rejected reports whether an error of Receive is the server's answer to a command, after
	// which the connection is as before.
	Rejected(err error) bool
	// Close ends the connection, and a Receive that waits on it.
	Close() error
}

// Reason is why somebody is woken.
type Reason uint8

const (
	// Message says that a message has arrived.
	Message Reason = iota
	// Confirmed says that from now on messages arrive.
	Confirmed
	// Interrupted says that for now none arrive: the connection is lost, or the server has
	// dropped the subscription. It is asked for again; Confirmed or Closed follows.
	Interrupted
	// Closed says that the connection is: no more will arrive by this subscription, it is Dead.
	Closed
)

// Topic is what messages are about.
type Topic struct {
	Key  string
	Lane string // of one who waits in Redis and has a channel of its own, its lane; else ""
}

// Config is what a Subscriber needs. All of it is required.
type Config struct {
	Wire Wire
	// Woken is notified of what has happened to the subscription of a topic. It must not wait.
	Woken func(about Topic, why Reason)
	// Spawn runs work in a goroutine of its owner, who ends it by its context and waits for
	// it. It does nothing when the owner has closed.
	Spawn func(work func(ctx context.Context))
}

// Subscriber has the subscriptions of a client. It is safe for concurrent use. It has
// goroutines while there are subscriptions: two per connection.
type Subscriber struct {
	cfg Config

	mu          sync.Mutex
	connections map[string]*connection // by node
	paces       map[string]*pace       // of attempts to connect, by node
}

// New makes a subscriber without subscriptions.
func New(cfg Config) *Subscriber {
	return &Subscriber{cfg: cfg, connections: make(map[string]*connection), paces: make(map[string]*pace)}
}

// Subscribe asks for the messages of channel, about a topic, and does not wait for Redis: Woken
// is called when it has confirmed. ctx is for finding the node. The subscription is to be given
// back by [Subscription.Unsubscribe].
func (s *Subscriber) Subscribe(ctx context.Context, about Topic, channel string) *Subscription {
	node := s.cfg.Wire.NodeOf(ctx, about.Key)
	for {
		c := s.connection(node, about.Key)
		if sub := c.use(about, channel); sub != nil {
			return sub
		}
		s.forget(c) // it was closed in this instant
	}
}

func (s *Subscriber) connection(node, key string) *connection {
	c, opened := s.open(node, key)
	if opened {
		s.cfg.Spawn(c.run)
	}
	return c
}

func (s *Subscriber) open(node, key string) (c *connection, opened bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.connections[node]
	if c != nil {
		return c, false
	}
	maps.DeleteFunc(s.paces, func(_ string, p *pace) bool { return p.healthy() })
	if s.paces[node] == nil {
		s.paces[node] = &pace{}
	}
	c = newConnection(&s.cfg, s.forget, node, key, s.paces[node])
	s.connections[node] = c
	return c, true
}

func (s *Subscriber) forget(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connections[c.node] == c {
		delete(s.connections, c.node)
	}
}
