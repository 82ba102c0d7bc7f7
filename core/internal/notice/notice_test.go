package notice_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/notice"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wakeup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is Notices over a watchdog and a Cluster in memory.
type bed struct {
	t        *testing.T
	notices  *notice.Notices
	watchdog *lease.Watchdog
	masters  map[string]*node // by key; the node "a" by default
	a, b     *node

	mu    sync.Mutex
	asked []string // the keys of questions
}

func inBubble(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t, masters: make(map[string]*node), a: newNode("a"), b: newNode("b")}
		life, end := context.WithCancel(context.Background())
		var workers sync.WaitGroup
		spawn := func(work func(ctx context.Context)) { workers.Go(func() { work(life) }) }
		b.watchdog = lease.NewWatchdog(lease.Config{
			Start: time.Now(), TTL: time.Hour, Timeout: time.Minute, Renewer: b, Spawn: spawn,
			Over: errors.New("over"), Gone: errors.New("gone"), //nolint:err113 // as good as sentinels here
		})
		spawn(b.watchdog.Run)
		b.notices = notice.New(notice.Config{
			Wire: b, Leases: b.watchdog.Leases, Spawn: spawn,
			Channel: func(c redisstore.Claim) string { return channel(c.Key) },
		})
		spawn(b.notices.Run)
		test(t, b)
		end()
		workers.Wait()
	})
}

func channel(key string) string { return "changes of " + key }

// hold returns a new lease.
func (b *bed) hold(key string) *lease.Lease {
	l := new(lease.Lease)
	b.watchdog.Open(l, redisstore.Claim{Key: key, Field: "f"}, ignore{}, time.Now(), time.Hour)
	l.Watch(time.Now())
	return l
}

type ignore struct{}

func (ignore) Lost(error)                   {}
func (ignore) Renewed(error, time.Duration) {}

// Renew implements lease.Renewer.
func (b *bed) Renew(_ context.Context, claims []redisstore.Claim, _ time.Duration) []redisstore.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	verdicts := make([]redisstore.Verdict, len(claims))
	for i, c := range claims {
		b.asked = append(b.asked, c.Key)
		verdicts[i].Held = true
	}
	return verdicts
}

// NodeName implements lease.Renewer.
func (b *bed) NodeName(ctx context.Context, key string) string { return b.NodeOf(ctx, key) }

// wantAsked lets d go by and compares the keys about which the watchdog has asked since the last call.
func (b *bed) wantAsked(d time.Duration, want ...string) {
	b.t.Helper()
	time.Sleep(d) // virtual time
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.asked)
	if !slices.Equal(b.asked, want) {
		b.t.Errorf("questions: got %q, want %q", b.asked, want)
	}
	b.asked = nil
}

// move makes a node the master of a key.
func (b *bed) move(key string, to *node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.masters[key] = to
}

func (b *bed) master(key string) *node {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n, moved := b.masters[key]; moved {
		return n
	}
	return b.a
}

// NodeOf implements wakeup.Wire.
func (b *bed) NodeOf(_ context.Context, key string) string {
	if n := b.master(key); n != nil {
		return n.name
	}
	return ""
}

// Connect implements wakeup.Wire.
func (b *bed) Connect(_ context.Context, key string) (wakeup.Connection, error) {
	return b.master(key).connect(), nil
}

// node is a server to which at most one subscription connection exists.
type node struct {
	name string

	mu          sync.Mutex
	connections int // so far
	connection  *connection
	channels    map[string]bool
}

func newNode(name string) *node { return &node{name: name} }

func (n *node) connect() *connection {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connections++
	n.channels = make(map[string]bool)
	n.connection = &connection{node: n, events: make(chan redisstore.Event, 100), lost: make(chan struct{})}
	return n.connection
}

// wantListening compares the channels of a node.
func (n *node) wantListening(t *testing.T, keys ...string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range keys {
		if !n.channels[channel(key)] {
			t.Errorf("node %s: not subscribed to %s", n.name, key)
		}
	}
	if len(n.channels) != len(keys) {
		t.Errorf("node %s: got the channels %v, want the channels of %q", n.name, n.channels, keys)
	}
}

// change announces a change of a key, if the client listens.
func (n *node) change(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.channels[channel(key)] {
		n.connection.events <- redisstore.Event{Kind: redisstore.Message, Channel: channel(key)}
	}
}

// drop closes the connection.
func (n *node) drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.connection.lost)
	n.channels = nil
}

// connection is a wakeup.Connection.
type connection struct {
	node   *node
	events chan redisstore.Event
	lost   chan struct{}
}

func (*connection) Sharded() bool          { return true }
func (*connection) ShouldReplace() bool    { return false }
func (*connection) Rejected(error) bool    { return false }
func (*connection) Close() error           { return nil }
func (c *connection) Ping(context.Context) { c.events <- redisstore.Event{} }

func (c *connection) Subscribe(_ context.Context, channels []string) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	for _, ch := range channels {
		c.node.channels[ch] = true
		c.events <- redisstore.Event{Kind: redisstore.Subscribed, Channel: ch}
	}
}

func (c *connection) Unsubscribe(_ context.Context, channels []string) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	for _, ch := range channels {
		delete(c.node.channels, ch)
	}
}

var errLost = errors.New("the connection is lost")

func (c *connection) Receive(ctx context.Context, d time.Duration) (redisstore.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case e := <-c.events:
		return e, nil
	case <-c.lost:
		return redisstore.Event{}, errLost
	case <-ctx.Done():
		return redisstore.Event{}, ctx.Err()
	}
}

func TestNotices_OnlyLongHolds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		for range 50 { // each look finds one of them
			short := b.hold("short")
			b.wantAsked(900 * time.Millisecond)
			short.End()
		}
		if b.a.connections != 0 {
			t.Error("a client without long holds has a connection for notices")
		}
		b.hold("long")
		b.wantAsked(2*time.Second, "long")
		b.a.wantListening(t, "long")
		b.wantAsked(time.Minute) // the confirmation is the only reason to ask
		b.a.change("long")
		b.a.change("long")
		b.wantAsked(time.Second, "long")
	})
}

func TestNotices_UnsubscribeAtTheEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		ends, stays := b.hold("ends"), b.hold("stays")
		b.wantAsked(3*time.Second, "ends", "stays")
		ends.End()
		b.wantAsked(2 * time.Second)
		b.hold("ends") // short, in the time in which the subscription stays
		b.a.change("ends")
		b.wantAsked(0)
		b.wantAsked(20*time.Second, "ends") // it has become long
		b.a.wantListening(t, "ends", "stays")
		stays.End()
		b.wantAsked(20 * time.Second)
		b.a.wantListening(t, "ends")
		if n := b.notices.Keys(); n != 1 {
			t.Errorf("leases of %d keys are remembered, want 1", n)
		}
	})
}

// Leases of one key share a subscription. Each is asked about when it becomes long, because an earlier message may have
// been about it.
func TestNotices_SeveralLeasesOfAKey(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		first := b.hold("k")
		b.wantAsked(3*time.Second, "k")
		b.hold("k")
		b.wantAsked(3*time.Second, "k")
		b.a.change("k")
		b.wantAsked(time.Second, "k", "k")
		first.End()
		b.wantAsked(10 * time.Second)
		b.a.change("k")
		b.wantAsked(time.Second, "k")
		b.a.wantListening(t, "k")
	})
}

func TestNotices_FollowTheMaster(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.hold("moves")
		b.hold("stays")
		b.wantAsked(3*time.Second, "moves", "stays")
		b.move("moves", b.b)
		b.wantAsked(2*time.Second, "moves")
		b.b.wantListening(t, "moves")
		b.b.change("moves")
		b.wantAsked(time.Second, "moves")
		b.move("moves", nil) // the masters are not known for a while
		b.wantAsked(20 * time.Second)
		b.a.wantListening(t, "stays")
		b.b.wantListening(t, "moves")
	})
}

func TestNotices_DeadSubscription(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.hold("k")
		b.wantAsked(3*time.Second, "k")
		b.a.drop()
		b.wantAsked(3*time.Second, "k")
		b.a.wantListening(t, "k")
		b.a.change("k")
		b.wantAsked(time.Second, "k")
		if b.a.connections != 2 {
			t.Errorf("got %d connections, want 2", b.a.connections)
		}
	})
}
