package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// linger is how long a subscription outlives its last waiter: a lock that was
// contended a moment ago will be again.
const linger = 5 * time.Second

// hub listens for wake-ups: one connection per client, and one per master of a
// Cluster with sharded pub/sub. A message is a hint that somebody should look; the
// poll of the waiters is what they rely on.
type hub struct {
	client *Client

	mu    sync.Mutex
	feeds map[string]*feed // by node
}

// topic is the subscription to the wake-ups of one key.
type topic struct {
	feed      *feed
	key       string
	channel   string
	confirmed atomic.Bool
	dead      atomic.Bool // its connection has ended; waiters need another topic

	// Guarded by the feed.
	users int
	since time.Time // when the last user went
}

func newHub(c *Client) *hub {
	return &hub{client: c, feeds: make(map[string]*feed)}
}

// subscribe asks for the wake-ups of key, and returns at once. When Redis confirms,
// the head of the line is woken, which closes the gap between its attempt and the
// subscription.
func (h *hub) subscribe(ctx context.Context, key string) *topic {
	name := ""
	if h.client.store.Sharded() {
		name = h.client.store.NodeName(ctx, key)
	}
	for {
		f := h.feed(name, key)
		if t := f.use(key); t != nil {
			return t
		}
		h.forget(name, f) // it ended in this instant
	}
}

// Release gives the subscription back.
func (t *topic) Release() {
	t.feed.mu.Lock()
	defer t.feed.mu.Unlock()
	t.users--
	t.since = time.Now()
}

// Confirmed reports whether messages arrive.
func (t *topic) Confirmed() bool { return t.confirmed.Load() }

// Dead reports whether none will arrive any more.
func (t *topic) Dead() bool { return t.dead.Load() }

func (h *hub) feed(name, key string) *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[name]
	if f == nil {
		f = newFeed(h, name, key)
		h.feeds[name] = f
		h.client.spawn(f.run)
	}
	return f
}

func (h *hub) forget(name string, f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.feeds[name] == f {
		delete(h.feeds, name)
	}
}

// woken passes a wake-up on to the line of key.
func (h *hub) woken(key string) {
	h.client.doubt(h.client.queues.Message(key, time.Now()))
}

// feed is one subscription connection.
type feed struct {
	hub  *hub
	name string
	key  string // tells the node
	work chan struct{}

	mu     sync.Mutex
	topics map[string]*topic // by channel
	fresh  []string          // channels to subscribe
	ended  bool
}

func newFeed(h *hub, name, key string) *feed {
	return &feed{hub: h, name: name, key: key, work: make(chan struct{}, 1), topics: make(map[string]*topic)}
}

// use adds a user to the topic of key, nil if the feed has ended.
func (f *feed) use(key string) *topic {
	channel := redisstore.Channel(key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil
	}
	t := f.topics[channel]
	if t == nil {
		t = &topic{feed: f, key: key, channel: channel}
		f.topics[channel] = t
		f.fresh = append(f.fresh, channel)
		select {
		case f.work <- struct{}{}:
		default:
		}
	}
	t.users++
	return t
}

// pingInterval is how often the connection has to prove that it lives. go-redis
// sends pings too, but does not miss the answers.
const pingInterval = time.Second

// run keeps the connection until nobody has needed it for a while, or ctx ends.
func (f *feed) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	subs, err := f.hub.client.store.Subscriptions(ctx, f.key)
	if err != nil {
		_ = f.hub.client.sleep(ctx, feedPause) //nolint:errcheck // it ends either way
		cancel()
		f.end()
		return
	}
	var reader sync.WaitGroup
	reader.Go(func() {
		defer cancel()
		f.read(ctx, subs)
	})
	f.write(ctx, subs)
	cancel()
	_ = subs.Close() //nolint:errcheck // nothing was entrusted to it
	reader.Wait()
	f.end()
}

// end leaves the topics that still have users to other feeds: their waiters look,
// and subscribe anew.
func (f *feed) end() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.hub.forget(f.name, f)
	for _, t := range f.topics { // nobody adds to them any more
		t.confirmed.Store(false)
		t.dead.Store(true)
		f.hub.client.queues.Wake(t.key)
	}
}

// write subscribes, unsubscribes and pings.
func (f *feed) write(ctx context.Context, subs *redisstore.Subscriptions) {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.work:
			subs.Subscribe(ctx, f.takeFresh())
		case <-tick.C:
			stale, empty := f.sweep(time.Now())
			if empty {
				return
			}
			subs.Unsubscribe(ctx, stale)
			subs.Ping(ctx)
			for _, channel := range f.silent() { // in a command of its own: the server may refuse some only
				subs.Subscribe(ctx, []string{channel})
			}
		}
	}
}

func (f *feed) takeFresh() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh := f.fresh
	f.fresh = nil
	return fresh
}

// sweep gives up the topics that nobody has used for a while. When none is left
// the feed has ended.
func (f *feed) sweep(now time.Time) (stale []string, empty bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for channel, t := range f.topics {
		if t.users == 0 && now.Sub(t.since) >= linger {
			delete(f.topics, channel)
			stale = append(stale, channel)
		}
	}
	f.ended = len(f.topics) == 0
	return stale, f.ended
}

// maxAskedAgain is how many channels are asked for again at a time.
const maxAskedAgain = 20

// silent gives channels that are wanted and not confirmed: the server has refused
// them, by an ACL say, which an operator may mend.
func (f *feed) silent() (channels []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for channel, t := range f.topics {
		if t.users > 0 && !t.confirmed.Load() && len(channels) < maxAskedAgain {
			channels = append(channels, channel)
		}
	}
	return channels
}

// read passes on what comes in. A connection that was lost is made again by the
// subscriptions, which confirms every channel anew: then everybody looks. With
// sharded channels the feed ends instead: they may belong to another node now, and
// go-redis would ask for all of them in one command, across slots.
func (f *feed) read(ctx context.Context, subs *redisstore.Subscriptions) {
	for ctx.Err() == nil {
		event, err := subs.Receive(ctx, 3*pingInterval)
		moved := event.Kind == redisstore.Unsubscribed && subs.Sharded() && f.has(event.Channel)
		if subs.Refused(err) { // some channels; the others go on
			_ = f.hub.client.sleep(ctx, firstPause) //nolint:errcheck // the loop looks at ctx
			continue
		}
		if err != nil || moved {
			f.interrupted()
			if subs.Sharded() {
				_ = f.hub.client.sleep(ctx, feedPause) //nolint:errcheck // it ends either way
				return
			}
			_ = f.hub.client.sleep(ctx, firstPause) //nolint:errcheck // the loop looks at ctx
			continue
		}
		if event.Channel != "" {
			f.handle(event)
		}
	}
}

// has says whether a channel is wanted.
func (f *feed) has(channel string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.topics[channel] != nil
}

// feedPause keeps a node that refuses subscriptions from being asked all the time.
const feedPause = 200 * time.Millisecond

// interrupted marks all topics as not confirmed, and has their waiters know.
func (f *feed) interrupted() {
	f.mu.Lock()
	var deaf []string
	for _, t := range f.topics {
		if t.confirmed.Swap(false) {
			deaf = append(deaf, t.key)
		}
	}
	f.mu.Unlock()
	for _, key := range deaf {
		f.hub.client.queues.Look(key)
	}
}

func (f *feed) handle(e redisstore.Event) {
	f.mu.Lock()
	t := f.topics[e.Channel]
	if t == nil {
		f.mu.Unlock()
		return
	}
	switch e.Kind {
	case redisstore.Subscribed:
		t.confirmed.Store(true)
	case redisstore.Unsubscribed: // not by us: the slot has moved, or an operator did it
		t.confirmed.Store(false)
		f.fresh = append(f.fresh, e.Channel)
		select {
		case f.work <- struct{}{}:
		default:
		}
	case redisstore.Message:
	}
	f.mu.Unlock()
	f.hub.woken(t.key)
}
