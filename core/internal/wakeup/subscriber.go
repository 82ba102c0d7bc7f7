package wakeup

import (
	"context"
	"maps"
	"sync"
)

// Subscriber manages the subscriptions of a client. It is safe for concurrent use. It runs two goroutines
// per connection while there are subscriptions.
type Subscriber struct {
	cfg Config

	mu          sync.Mutex
	connections map[string]*connection // by node
	paces       map[string]*pace       // paces of attempts to connect, by node
}

// New returns a subscriber without subscriptions.
func New(cfg Config) *Subscriber {
	return &Subscriber{cfg: cfg, connections: make(map[string]*connection), paces: make(map[string]*pace)}
}

// Subscribe subscribes to the messages of channel about a topic. It does not wait for Redis. When Redis confirms the
// subscription, Subscriber calls [Config.Notify]. If messages of the channel arrive already, for another topic,
// Subscribe itself calls it. ctx limits only the search for the node. The caller releases the subscription with
// [Subscription.Unsubscribe].
func (s *Subscriber) Subscribe(ctx context.Context, about Topic, channel string) *Subscription {
	node := s.cfg.Wire.NodeOf(ctx, about.Key)
	for {
		c := s.connection(node, about.Key)
		sub, arrives := c.addUser(about, channel)
		if arrives {
			s.cfg.Notify(about, Confirmed)
		}
		if sub != nil {
			return sub
		}
		s.forget(c) // c was closed in between
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
