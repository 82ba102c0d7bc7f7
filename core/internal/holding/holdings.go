package holding

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
)

// Redis has the scripts of a lock that is held.
type Redis interface {
	// Hold writes the number of holds. A lease that is not 0 raises the lease in Redis, never lowers it.
	Hold(now time.Time, c redisstore.Claim, count int, lease time.Duration) redisstore.Call[bool]
	// Refresh sets the lease, up or down.
	Refresh(now time.Time, c redisstore.Claim, lease time.Duration) redisstore.Call[redisstore.Change]
	// HandOff puts another field in the place of the holder.
	HandOff(now time.Time, c redisstore.Claim, to string, t redisstore.Terms) redisstore.Call[redisstore.Change]
	// Release frees the lock and publishes that.
	Release(now time.Time, c redisstore.Claim) redisstore.Call[redisstore.Released]
	// CountsOneNode reports whether Released.Notified counts the subscribers of one node of a Cluster only.
	CountsOneNode() bool
}

// Graves clear up fields in Redis after commands without an answer.
type Graves interface {
	// Relinquish has a field cleared up that no command can bring back.
	Relinquish(kind *redisstore.Kind, keys []string, field string, lease time.Duration)
	// Abandon has a field cleared up that a command without an answer may still bring.
	Abandon(kind *redisstore.Kind, keys []string, field string, call reaper.LateAnswer, lease time.Duration)
}

// Watcher learns what happens to holds. It must not block.
type Watcher interface {
	Renewed(h *Hold, err error, late time.Duration)
	Lost(h *Hold, cause error)
	Leaked(h *Hold)
	Ended(h *Hold, how End)
}

// Config is what the holds of a client need. All of it is required.
type Config struct {
	ClientID string // the order in which the mutexes of several clients are taken follows from it
	Redis    Redis
	Sender   *resend.Sender
	Queues   *queue.Queues
	Graves   Graves
	Watchdog *lease.Watchdog
	Watcher  Watcher

	KeyOf     func(name string) string                    // makes the Redis key of a name
	NextField func(kind *redisstore.Kind) string          // makes a field that was never used
	FailFast  func(ctx context.Context, key string) error // is not nil while the node of the key is known to be silent
	Spawn     func(work func(ctx context.Context))        // runs work that the client waits for when it is closed
	Life      context.Context                             //nolint:containedctx // ends with that work
	Acks      bool                                        // replicas acknowledge every acquisition, so each has its own command
}

// Holdings are the holds of one client.
type Holdings struct{ Config }

// New returns the holds of a client, of which there are none yet.
func New(cfg Config) *Holdings { return &Holdings{cfg} }

// of returns the Holder that this package gave to a queue or to a lease.
func of(h any) *Holder {
	return h.(*Holder) //nolint:errcheck,forcetypeassert // no other type is given
}

// Of returns the Holder that a queue has granted.
func Of(h queue.Holder) *Holder { return of(h) }

// Register tells the queue of the key that the attempt of w has brought the lock. w is nil for a caller that does
// not wait. under is the holder that the caller has already, with which it shares the lock, or nil. Another holder
// of this client that had the lock is lost, or asks Redis.
func (hs *Holdings) Register(o, under *Holder, w *queue.Waiter, sent, now time.Time) {
	granted := queue.Grant{Holder: o, Kind: o.lease.Kind.Family, Shared: o.lease.Kind.Shared(), Sent: sent}
	if under != nil {
		granted.Under = under
	}
	for _, before := range hs.Queues.Acquired(o.lease.Key, w, granted, now) {
		if replaced := of(before.Holder); before.Gone {
			replaced.lease.Lose(failure.NotMine)
		} else {
			replaced.lease.Doubt()
		}
	}
}

// Doubt asks Redis, in the background, whether holders of this client still have their lock.
func (hs *Holdings) Doubt(holders []queue.Holder) {
	for _, h := range holders {
		of(h).lease.Doubt()
	}
}

// Hint is Doubt after a message on the channel of a lock. A message of a semaphore says only that one more permit
// is free, so Hint does nothing then.
func (hs *Holdings) Hint(holders []queue.Holder) {
	if len(holders) > 0 && of(holders[0]).lease.Kind.Shares != redisstore.Limited {
		hs.Doubt(holders)
	}
}

// Blocking returns the field of the hold of this client that has the lock, or a share of it. blockedBy is the field
// that Redis has named, or empty. A field of this client alone does not show such a hold, because Leave and
// abandoned acquisitions leave fields of this client, too.
func (hs *Holdings) Blocking(key, blockedBy string) (field string, own bool) {
	known := blockedBy == "" || strings.HasPrefix(blockedBy, hs.ClientID+":")
	for _, h := range hs.Queues.Holders(key) {
		if o := of(h); o.Lasts(time.Now()) && (known || o.lease.Kind.Shared()) {
			return o.Field(), true
		}
	}
	return "", false
}

// List returns the holds that have not ended, each once.
func (hs *Holdings) List() (list []*Hold) {
	seen := make(map[*Hold]bool)
	for _, l := range hs.Watchdog.Leases() {
		for _, h := range of(l.Holder()).live() {
			if !seen[h] {
				seen[h] = true
				list = append(list, h)
			}
		}
	}
	return list
}

// Oldest returns when the hold that has lasted longest was acquired. It is zero without a hold.
func (hs *Holdings) Oldest() (oldest time.Time) {
	for _, l := range hs.Watchdog.Leases() {
		at := of(l.Holder()).since()
		if oldest.IsZero() || !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// LeaveAll ends every hold with the cause that the client is closed, and returns how many keys are left to their
// leases.
func (hs *Holdings) LeaveAll() int {
	left := hs.Watchdog.Leases()
	for _, l := range left {
		l.Lose(failure.Closed)
	}
	return len(left)
}

// GiveBack frees holders that no caller has seen yet, all at once. It waits for that no longer than patience,
// and no longer than least once ctx has ended; the rest goes on in the background.
func GiveBack(ctx context.Context, got []*Holder, patience, least time.Duration) {
	if len(got) == 0 {
		return
	}
	ended := ctx.Done()
	if ctx.Err() != nil {
		patience, ended = 0, nil
	}
	limit := time.NewTimer(max(least, patience))
	defer limit.Stop()
	gone := make(chan struct{}, len(got))
	for _, o := range got {
		o.in.Spawn(func(life context.Context) {
			_ = o.freeNow(context.WithoutCancel(life)) //nolint:errcheck // the reaper goes on
			gone <- struct{}{}
		})
	}
	for range got {
		select {
		case <-gone:
		case <-limit.C:
			return
		case <-ended:
			return
		}
	}
}

// PassOn frees a holder whose waiter has left, in the background. The release begins at once, so that closing the
// client waits for it and does not leave the lock to its lease.
func (hs *Holdings) PassOn(o *Holder) {
	_ = o.lease.BeginRelease() //nolint:errcheck // freeNow finds a loss
	hs.Spawn(func(ctx context.Context) {
		_ = o.freeNow(context.WithoutCancel(ctx)) //nolint:errcheck // it has no caller; it leaves the rest to the reaper
	})
}

// othersNotified returns how many subscribers beside this client a message has reached. In a Cluster with classic
// pub/sub the count is that of one node, and says nothing.
func (hs *Holdings) othersNotified(key string, notified int) int {
	if hs.Redis.CountsOneNode() {
		return queue.Uncounted
	}
	if notified > 0 && hs.Queues.Listens(key) {
		notified--
	}
	return max(notified, 0)
}
