package core

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// ownership is one outermost acquisition of one key: a lease, and its holds, which are the
// acquisition itself and its re-entries.
type ownership struct {
	client     *Client
	lease      lease.Lease
	token      int64      // fencing token; 0 where the kind has none
	operations operations // on the wire, one at a time

	mu       sync.Mutex
	scopes   []*scope // live holds
	entering int      // re-entries that are not live holds yet
	amending bool     // the count in Redis may be wrong, and is being put right

	// Room for the first hold, so that the usual acquisition is one allocation less.
	first    scope
	self     [1]*ownership
	oneScope [1]*scope
}

// newOwnership has the lease that an acquire or a hand-off has brought. Nobody watches it yet.
func (c *Client) newOwnership(claim redisstore.Claim, token int64, sent time.Time, ttl time.Duration) *ownership {
	o := &ownership{client: c, token: token}
	o.self[0] = o
	o.scopes = o.oneScope[:0]
	c.watchdog.Open(&o.lease, claim, o, sent, ttl)
	return o
}

// watch puts the lease under watch, renewed or not: from the moment that the lock is acquired,
// which may be long before a MultiLock becomes a hold.
func (o *ownership) watch(renewed bool, at time.Time) {
	if renewed {
		o.lease.Renew(at)
	} else {
		o.lease.Watch(at)
	}
}

// enter adds a hold: the acquisition itself, or a re-entry.
func (o *ownership) enter(s *scope) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.scopes = append(o.scopes, s)
	if o.entering > 0 {
		o.entering-- // it was announced
	}
}

// count is how many holds there are, or are about to be. The mutex is held.
func (o *ownership) count() int { return len(o.scopes) + o.entering }

// holds is count for one who does not hold the mutex.
func (o *ownership) holds() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count()
}

// live are the holds that there are.
func (o *ownership) live() []*scope {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]*scope(nil), o.scopes...)
}

// since is when the first of the holds was acquired; zero without one.
func (o *ownership) since() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.scopes) == 0 {
		return time.Time{}
	}
	return o.scopes[0].origin.acquired()
}

// leave takes a hold away and gives how many are left. The caller has made sure
// that it is called once per hold.
func (o *ownership) leave(s *scope) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(s)
	return o.count()
}

// leaveUnlessLast takes a hold away that is not the only one.
func (o *ownership) leaveUnlessLast(s *scope) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count() > 1 {
		o.drop(s)
		s.cancel(errLeaked) // nobody listens, but an outer context still refers to it
	}
}

// drop takes a hold off the list, and leaves no trace of it there: the context of an
// inner hold keeps the outer one from the garbage collector. The mutex is held.
func (o *ownership) drop(s *scope) {
	o.scopes = slices.DeleteFunc(o.scopes, func(other *scope) bool { return other == s })
}

// replace puts one hold in the place of another.
func (o *ownership) replace(from, to *scope) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, s := range o.scopes {
		if s == from {
			o.scopes[i] = to
		}
	}
}

// checkClock loses the lease when its deadline has passed. When it returns, the contexts
// of the holds that cannot do without have ended, even if another goroutine is just about
// to end them.
func (o *ownership) checkClock(now time.Time) {
	cause := o.lease.CheckClock(now)
	if cause == nil {
		return // it lasts, or was released
	}
	for _, s := range o.live() {
		if s.lossCause() != nil {
			s.cancel(cause)
		}
	}
}

var (
	errLeaseOver = fmt.Errorf("%w: the lease is over", ErrLost)
	errLeaked    = fmt.Errorf("%w: the hold was garbage-collected", ErrLost)
	errNotMine   = fmt.Errorf("%w: another holder, or none, is in redis", ErrLost)
)

// Lost is called by the lease when it has ended under its holds. It ends the contexts of the holds that
// cannot do without it. It frees nothing, unless a command without an answer may have raised the lease in
// Redis. The reaper frees the lock then, because other callers would have to wait for the end of that lease.
func (o *ownership) Lost(error) {
	for _, s := range o.live() {
		if cause := s.lossCause(); cause != nil {
			s.lose(cause) // of several leases, all have a say in what it is
		}
	}
	if o.lease.Outlasts(time.Now()) {
		o.relinquish()
	}
	o.leaves(queue.NoMessage)
}

// relinquish has the reaper free the lock, if Redis still has it.
func (o *ownership) relinquish() {
	o.client.reaper.Relinquish(o.lease.Kind, []string{o.lease.Key}, o.lease.Field, o.lease.Longest())
}

// Renewed is what the lease calls after every renewal.
func (o *ownership) Renewed(err error, late time.Duration) {
	for _, s := range o.live() {
		s.collect()
		if observers := s.observers(); s.observed != nil && observers.renewal.Observed() {
			observers.renewal.Notify(s.observed, Renewal{HoldInfo: s.info(), Err: unavailable(err), Late: late})
		}
	}
}

// endCause is the error of an operation on a lease that is over.
func (o *ownership) endCause() error {
	if loss := o.lease.Loss(); loss != nil {
		return loss
	}
	return ErrNotHeld
}

// verify has Redis asked, in the background, whether o is still the holder.
func (c *Client) verify(o *ownership) {
	if o != nil {
		o.lease.Doubt()
	}
}
