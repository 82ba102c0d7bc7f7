// Package notice finds out that a lock was taken away before its holder asks Redis. It subscribes to the keyspace
// notifications of the keys of long holds. After a message about a key, it asks Redis about the leases of that key.
//
// The package does not decide that a lock is lost. It only calls [lease.Lease.Doubt]. A message may be missing, so the
// renewals and the deadlines of package lease remain. Package wakeup manages the subscriptions and the connections.
//
// A short hold costs nothing: the package subscribes to the key of a lease when it has found the lease at two looks.
package notice

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wakeup"
)

// interval is the time between two looks at the leases.
const interval = time.Second

// Config is the configuration of Notices. All fields are required.
type Config struct {
	// Wire connects to the node that announces the changes of a key.
	Wire wakeup.Wire
	// Leases returns the leases of the client.
	Leases func() []*lease.Lease
	// Channel returns the channel of the changes of the key that contains the field of a claim.
	Channel func(redisstore.Claim) string
	// Spawn is as in [wakeup.Config].
	Spawn func(work func(ctx context.Context))
}

// Notices listens for changes of the keys of a client.
type Notices struct {
	cfg     Config
	wakeups *wakeup.Subscriber

	// The fields below are used by Run only.
	looks int
	seen  map[*lease.Lease]*listener

	mu    sync.Mutex
	keyed map[string][]*lease.Lease // the leases with a subscription, by key
}

// listener is a lease that Run has seen.
type listener struct {
	look         int    // the last look that found the lease
	node         string // the node of the subscription
	subscription *wakeup.Subscription
}

// New returns Notices that do nothing before Run.
func New(cfg Config) *Notices {
	n := &Notices{cfg: cfg, seen: make(map[*lease.Lease]*listener), keyed: make(map[string][]*lease.Lease)}
	n.wakeups = wakeup.New(wakeup.Config{Wire: cfg.Wire, Notify: n.notify, Spawn: cfg.Spawn})
	return n
}

// Run looks at the leases once a second until ctx is canceled.
func (n *Notices) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.look(ctx)
		}
	}
}

// look subscribes to the keys of leases that the previous look also found, and unsubscribes from the keys of leases that
// have ended.
func (n *Notices) look(ctx context.Context) {
	n.looks++
	for _, l := range n.cfg.Leases() {
		if s := n.seen[l]; s == nil {
			n.seen[l] = &listener{look: n.looks}
		} else {
			s.look = n.looks
			n.listen(ctx, l, s)
		}
	}
	for l, s := range n.seen {
		if s.look != n.looks {
			delete(n.seen, l)
			n.forget(l)
			s.subscription.Unsubscribe() // nil after a short hold
		}
	}
}

// listen subscribes to the key of a lease, unless a working subscription exists on the node of the key. After its slot
// has moved, the node of a key is another one, and the old node sends no more messages about the key.
func (n *Notices) listen(ctx context.Context, l *lease.Lease, s *listener) {
	node := n.cfg.Wire.NodeOf(ctx, l.Key) // "" if the nodes are not known
	if s.subscription == nil {
		n.remember(l)
	} else if !s.subscription.Dead() && (node == s.node || node == "") {
		return
	}
	s.subscription.Unsubscribe()
	s.node, s.subscription = node, n.wakeups.Subscribe(ctx, wakeup.Topic{Key: l.Key}, n.cfg.Channel(l.Claim))
	if s.subscription.Confirmed() { // another lease has subscribed before, so that no confirmation follows
		l.Doubt()
	}
}

// remember makes notify ask about a lease.
func (n *Notices) remember(l *lease.Lease) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keyed[l.Key] = append(n.keyed[l.Key], l)
}

// forget reverses remember.
func (n *Notices) forget(l *lease.Lease) {
	n.mu.Lock()
	defer n.mu.Unlock()
	left := slices.DeleteFunc(n.keyed[l.Key], func(other *lease.Lease) bool { return other == l })
	if len(left) > 0 {
		n.keyed[l.Key] = left
	} else {
		delete(n.keyed, l.Key)
	}
}

// notify asks Redis about the leases of a key after a message. It also asks when messages begin to arrive, because
// earlier ones were missed.
func (n *Notices) notify(about wakeup.Topic, why wakeup.Reason) {
	if why != wakeup.Message && why != wakeup.Confirmed {
		return
	}
	n.mu.Lock()
	leases := slices.Clone(n.keyed[about.Key])
	n.mu.Unlock()
	for _, l := range leases {
		l.Doubt()
	}
}
