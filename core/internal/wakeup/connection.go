package wakeup

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

const (
	// pingInterval is the interval at which a connection sends a ping. go-redis also sends pings, but does not
	// notice missing answers.
	pingInterval = time.Second
	// silenceLimit is the time without an answer after which a connection counts as lost.
	silenceLimit = 3 * pingInterval
	// rejectedPause is the pause of a connection after the server rejected a command.
	rejectedPause = 5 * time.Millisecond
	// maxAskedAgain is the maximum number of rejected channels that are subscribed again at the same time.
	maxAskedAgain = 20
)

// connection is one subscription connection with its subscriptions.
//
//	open ─ nothing is subscribed, Redis cannot be reached, ShouldReplace, or the client is closed ─▶ closed
//
// A closed connection accepts no subscriptions.
type connection struct {
	cfg    *Config
	forget func(*connection)
	node   string
	key    string        // names the node
	work   chan struct{} // wakes write when fresh is not empty; capacity 1
	pace   *pace

	mu            sync.Mutex
	down          bool                       // lost and not connected again yet
	subscriptions map[string][]*Subscription // by channel, one for each topic, all in the same state; no slice is changed in place
	fresh         []string                   // channels to subscribe
	used          time.Time                  // when the last user released a subscription that was removed
	closed        bool
}

func newConnection(cfg *Config, forget func(*connection), node, key string, p *pace) *connection {
	return &connection{
		cfg: cfg, forget: forget, node: node, key: key, pace: p, work: make(chan struct{}, 1), subscriptions: make(map[string][]*Subscription),
	}
}

// addUser adds a user to the subscription of a channel for a topic. It returns nil if the connection is closed. arrives
// reports that the subscription is new and that messages arrive already, because another topic has the channel.
func (c *connection) addUser(about Topic, channel string) (s *Subscription, arrives bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false
	}
	others := c.subscriptions[channel]
	for _, s := range others {
		if s.about == about {
			s.users++
			return s, false
		}
	}
	s = &Subscription{mu: &c.mu, about: about, channel: channel, users: 1}
	if len(others) == 0 {
		c.requestChannel(channel)
	} else {
		arrives = others[0].Confirmed()
	}
	if arrives {
		s.become(confirmed)
	}
	c.subscriptions[channel] = append(slices.Clip(others), s)
	return s, arrives
}

// requestChannel makes write subscribe to a channel. The mutex is held.
func (c *connection) requestChannel(channel string) {
	c.fresh = append(c.fresh, channel)
	c.wakeWriter()
}

func (c *connection) wakeWriter() {
	select {
	case c.work <- struct{}{}:
	default:
	}
}

// run keeps the connection until no waiter has needed it for linger, or ctx is canceled.
func (c *connection) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer c.close()
	defer cancel()
	c.pace.recordAttempt()
	wire, err := c.cfg.Wire.Connect(ctx, c.key)
	if err != nil {
		c.pace.sleep(ctx)
		return
	}
	var reader sync.WaitGroup
	reader.Go(func() {
		defer cancel()
		c.read(ctx, wire)
	})
	c.write(ctx, wire)
	cancel()
	_ = wire.Close() //nolint:errcheck // no caller could act on it
	reader.Wait()
}

// close closes the connection. Its subscriptions become dead, and close notifies their waiters, which subscribe again
// on another connection.
func (c *connection) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.forget(c)
	for _, list := range c.subscriptions { // the map no longer changes
		for _, s := range list {
			s.become(dead)
			c.cfg.Notify(s.about, Closed)
		}
	}
}

// write subscribes, unsubscribes and pings. It waits while the connection is down, because each
// command would start another attempt to connect.
func (c *connection) write(ctx context.Context, wire Connection) {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	var stale []string
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.work:
			if fresh := c.takeFresh(); len(fresh) > 0 {
				wire.Subscribe(ctx, fresh)
			}
		case <-tick.C:
			more, empty := c.sweep(time.Now())
			if empty || wire.ShouldReplace() {
				return
			}
			if stale = append(stale, more...); c.isDown() {
				continue
			}
			wire.Unsubscribe(ctx, stale)
			wire.Ping(ctx)
			for _, channel := range c.unconfirmedChannels() { // in a separate command, because the server may reject only some
				wire.Subscribe(ctx, []string{channel})
			}
			stale = nil
		}
	}
}

func (c *connection) isDown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down
}

func (c *connection) setDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

// takeFresh takes the fresh channels, unless the connection is down.
func (c *connection) takeFresh() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return nil
	}
	fresh := c.fresh
	c.fresh = nil
	return fresh
}

// sweep removes the subscriptions that are stale and returns the channels that no topic needs any more. If no
// subscription is left and the last user left at least linger ago, sweep marks the connection as closed and returns empty.
func (c *connection) sweep(now time.Time) (stale []string, empty bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for channel, list := range c.subscriptions {
		switch left := c.dropStale(list, now); {
		case len(left) == 0:
			delete(c.subscriptions, channel)
			stale = append(stale, channel)
		case len(left) < len(list):
			c.subscriptions[channel] = left
		}
	}
	c.closed = len(c.subscriptions) == 0 && now.Sub(c.used) >= linger
	return stale, c.closed
}

// dropStale returns the subscriptions that are not stale. The mutex is held.
func (c *connection) dropStale(list []*Subscription, now time.Time) (left []*Subscription) {
	if !slices.ContainsFunc(list, func(s *Subscription) bool { return s.stale(now) }) {
		return list
	}
	for _, s := range list {
		if !s.stale(now) {
			left = append(left, s)
			continue
		}
		if s.since.After(c.used) {
			c.used = s.since
		}
		s.become(dead) // a queue that still refers to it notices
	}
	return left
}

// unconfirmedChannels returns channels that have users and are not confirmed, at most maxAskedAgain. The server has
// rejected them, for example because of an ACL, which an operator may correct.
func (c *connection) unconfirmedChannels() (channels []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for channel, list := range c.subscriptions {
		if len(channels) < maxAskedAgain && slices.ContainsFunc(list, (*Subscription).unconfirmed) {
			channels = append(channels, channel)
		}
	}
	return channels
}

// read receives events and handles them. The next Receive restores a lost connection, so every channel is confirmed
// again, which notifies all waiters. With sharded channels read returns instead, and the connection is closed. The
// channels may belong to another node then, and go-redis would subscribe to channels of several slots in one command.
func (c *connection) read(ctx context.Context, wire Connection) {
	for again := false; ctx.Err() == nil; {
		event, err := wire.Receive(ctx, silenceLimit)
		if again && err == nil {
			again = false
			c.wakeWriter()
		}
		moved := event.Kind == redisstore.Unsubscribed && wire.Sharded() && c.has(event.Channel)
		switch {
		case wire.Rejected(err): // the server rejects some channels; the others work
			if c.cfg.Rejected != nil {
				c.cfg.Rejected(err)
			}
			_ = jitter.Sleep(ctx, rejectedPause) //nolint:errcheck // the loop checks ctx
		case err != nil || moved:
			c.setDown(true)
			c.wakeInterrupted()
			c.pace.sleep(ctx)
			if wire.Sharded() {
				return
			}
			again = true
			c.setDown(false)
		case event.Channel != "":
			c.handle(event)
		}
	}
}

// has reports whether the connection has a subscription of a channel.
func (c *connection) has(channel string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.subscriptions[channel]) > 0
}

// wakeInterrupted notifies the waiters whose confirmed subscriptions were interrupted.
func (c *connection) wakeInterrupted() {
	for _, about := range c.unconfirm() {
		c.cfg.Notify(about, Interrupted)
	}
}

// unconfirm marks all subscriptions as not confirmed and returns the topics of the confirmed ones.
func (c *connection) unconfirm() (topics []Topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range c.subscriptions {
		for _, s := range list {
			if s.become(asked) == confirmed {
				topics = append(topics, s.about)
			}
		}
	}
	return topics
}

// handle records an event and notifies the waiters of its topics, if they have to know of the event.
func (c *connection) handle(e redisstore.Event) {
	list, why := c.recordEvent(e)
	for _, s := range list {
		c.cfg.Notify(s.about, why)
	}
}

// recordEvent records an event of a channel. It returns the subscriptions whose waiters have to be notified, and the
// reason.
func (c *connection) recordEvent(e redisstore.Event) (list []*Subscription, why Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list = c.subscriptions[e.Channel]
	switch {
	case len(list) == 0 || e.Kind == redisstore.Message:
		return list, Message
	case e.Kind == redisstore.Subscribed:
		for _, s := range list {
			s.become(confirmed)
		}
		return list, Confirmed
	default: // Unsubscribed, and not by this process: the slot moved, or an operator did it
		c.requestChannel(e.Channel)
		before := asked
		for _, s := range list {
			before = s.become(asked)
		}
		if before != confirmed {
			return nil, Interrupted
		}
		return list, Interrupted
	}
}
