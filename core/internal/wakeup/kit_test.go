package wakeup_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wakeup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a subscriber on a wire in memory. It records the notifications of the subscriber.
type bed struct {
	*wakeup.Subscriber
	*wire

	t       *testing.T
	end     context.CancelFunc
	workers sync.WaitGroup

	said  sync.Mutex
	words []string
}

// inBubble runs a test with the clock of a bubble.
func inBubble(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t, wire: &wire{answers: true, rejects: map[string]bool{}}}
		life, end := context.WithCancel(context.Background())
		b.end = end
		b.Subscriber = wakeup.New(wakeup.Config{
			Wire:   b.wire,
			Notify: b.woken,
			Spawn: func(work func(ctx context.Context)) {
				if life.Err() == nil {
					b.workers.Go(func() { work(life) })
				}
			},
		})
		defer b.workers.Wait()
		defer end()
		test(t, b)
	})
}

// subscribe subscribes to a key. Its channel is named after it.
func (b *bed) subscribe(key string) *wakeup.Subscription {
	return b.Subscribe(b.t.Context(), wakeup.Topic{Key: key}, channel(key))
}

func channel(key string) string { return "channel of " + key }

var reasons = map[wakeup.Reason]string{
	wakeup.Message: "message", wakeup.Confirmed: "confirmed", wakeup.Interrupted: "interrupted", wakeup.Closed: "closed",
}

func (b *bed) woken(about wakeup.Topic, why wakeup.Reason) {
	_ = b.Connections() // the subscriber calls it without its mutexes
	b.said.Lock()
	defer b.said.Unlock()
	b.words = append(b.words, about.Key+" "+reasons[why])
}

// wantSaid requires the notifications since the last call, in any order of the keys.
func (b *bed) wantSaid(want ...string) {
	b.t.Helper()
	synctest.Wait()
	b.said.Lock()
	defer b.said.Unlock()
	got := b.words
	b.words = nil
	byKey := func(x, y string) int { return strings.Compare(x[:strings.Index(x, " ")], y[:strings.Index(y, " ")]) }
	slices.SortStableFunc(got, byKey)
	if !slices.Equal(got, want) {
		b.t.Errorf("woken: got %q, want %q", got, want)
	}
}

// wire makes connections in memory.
type wire struct {
	mu        sync.Mutex
	sharded   bool
	answers   bool            // whether the server answers
	rejects   map[string]bool // the channels that the server rejects
	drops     bool            // every new connection is lost at once
	era       int             // connections of an earlier era should be replaced
	made      int             // the number of dropped connections
	broken    error           // the error of Connect
	opening   chan struct{}   // Connect blocks until it is closed; may be nil
	opened    []*connection
	attempted int
}

// NodeOf puts the key "a:1" on the node "a".
func (w *wire) NodeOf(_ context.Context, key string) string {
	if !w.sharded {
		return ""
	}
	node, _, _ := strings.Cut(key, ":")
	return node
}

func (w *wire) Connect(context.Context, string) (wakeup.Connection, error) {
	if w.opening != nil {
		<-w.opening
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempted++
	if w.broken != nil {
		return nil, w.broken
	}
	c := &connection{wire: w, era: w.era, events: make(chan result, 1000), closed: make(chan struct{})}
	w.opened = append(w.opened, c)
	return c, nil
}

// connection returns the n-th connection that was opened.
func (w *wire) connection(n int) *connection {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.opened[n]
}

// set changes what the server does.
func (w *wire) set(change func(w *wire)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

// result is what Receive returns.
type result struct {
	event redisstore.Event
	err   error
}

var (
	errLost     = errors.New("connection lost")
	errRejected = errors.New("NOPERM")
	errSilence  = errors.New("nothing came")
)

// connection is a connection in memory. Like go-redis, it restores a lost connection by itself.
type connection struct {
	wire   *wire
	era    int
	events chan result
	closed chan struct{}

	mu       sync.Mutex
	channels []string   // the channels that are subscribed or requested
	asked    [][]string // the commands since the last call of commands
	pings    int
	lost     bool
}

func (c *connection) Sharded() bool { return c.wire.sharded }

func (c *connection) ShouldReplace() bool {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	return c.era != c.wire.era
}

func (c *connection) Subscribe(_ context.Context, channels []string) {
	c.mu.Lock()
	c.asked = append(c.asked, channels)
	for _, ch := range channels {
		if !slices.Contains(c.channels, ch) {
			c.channels = append(c.channels, ch)
		}
	}
	c.mu.Unlock()
	c.confirm(channels)
}

func (c *connection) confirm(channels []string) {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	for _, ch := range channels {
		switch {
		case !c.wire.answers:
		case c.wire.rejects[ch]:
			c.events <- result{err: errRejected}
		default:
			c.events <- result{event: redisstore.Event{Kind: redisstore.Subscribed, Channel: ch}}
		}
	}
}

func (c *connection) Unsubscribe(_ context.Context, channels []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.channels = slices.DeleteFunc(c.channels, func(ch string) bool { return slices.Contains(channels, ch) })
	for _, ch := range channels {
		c.events <- result{event: redisstore.Event{Kind: redisstore.Unsubscribed, Channel: ch}}
	}
}

func (c *connection) Ping(context.Context) {
	c.mu.Lock()
	c.pings++
	c.mu.Unlock()
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	if c.wire.answers {
		c.events <- result{}
	}
}

func (c *connection) Receive(ctx context.Context, d time.Duration) (redisstore.Event, error) {
	c.wire.mu.Lock()
	drops := c.wire.drops
	if drops {
		c.wire.made++
	}
	c.wire.mu.Unlock()
	c.mu.Lock()
	if drops {
		c.lost = true
		c.mu.Unlock()
		return redisstore.Event{}, errLost
	}
	again, channels := c.lost, slices.Clone(c.channels)
	c.lost = false
	c.mu.Unlock()
	if again {
		c.confirm(channels)
	}
	limit := time.NewTimer(d)
	defer limit.Stop()
	r := result{err: errSilence}
	select {
	case r = <-c.events:
	case <-limit.C:
	case <-ctx.Done():
		r.err = ctx.Err()
	case <-c.closed:
		r.err = errLost
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = r.err != nil && !c.Rejected(r.err)
	return r.event, r.err
}

func (c *connection) Rejected(err error) bool { return errors.Is(err, errRejected) }

func (c *connection) Close() error {
	close(c.closed)
	return nil
}

// publish makes a message arrive, or another event.
func (c *connection) publish(key string, kind redisstore.EventKind) {
	c.events <- result{event: redisstore.Event{Kind: kind, Channel: channel(key)}}
}

// fail lets the connection fail once.
func (c *connection) fail() { c.events <- result{err: errLost} }

// commands returns the requested subscriptions since the last call.
func (c *connection) commands() (asked [][]string) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	asked, c.asked = c.asked, nil
	return asked
}

func (c *connection) subscribed() int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.channels)
}

func (c *connection) pinged() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pings
}

func (c *connection) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// pass lets virtual time pass and waits until all due events have happened.
func pass(d time.Duration) {
	time.Sleep(d) // virtual time
	synctest.Wait()
}
