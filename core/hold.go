package core

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// Hold is one acquisition that succeeded. It is safe for concurrent use. A nil
// *Hold is what a failed Acquire gives, and a handler that runs unlocked: its Release is
// [ErrNotHeld], and what can be asked of it is empty.
type Hold struct {
	scope *scope
	ctx   holdContext
}

// scope is the part of a hold that the client keeps: what the watchdog and the
// observers need, but not the Hold itself, so that a Hold that nobody refers to
// any more can be noticed.
type scope struct {
	owners   []*ownership // one per key; of a Redlock one per server that granted it
	needs    int          // so many of their leases; with fewer it is lost
	cancel   context.CancelCauseFunc
	origin   origin
	watchdog atomic.Bool     // the owners count it among the holds to renew
	observed context.Context //nolint:containedctx // what the observers of this hold get, nil without observers
	ended    atomic.Bool
	leaked   atomic.Bool  // nobody can end it any more; its lease does
	over     atomic.Int32 // under its holder: notOver, overLost or overLeft

	// A hold that is renewed, or observed, is watched by the garbage collector from the
	// first renewal on, or from its loss. Until then it is kept alive here: most holds are
	// over by then, and need not pay for it.
	unwatched atomic.Pointer[Hold]
	cleanup   atomic.Pointer[runtime.Cleanup]
}

// How a hold was over before its holder ended it.
const (
	notOver  int32 = iota
	overLost       // the lease ran out, or Redis has the lock no more
	overLeft       // the client was closed; the key is left to its lease
)

// overBy is how a hold is over by a cause.
func overBy(cause error) int32 {
	if errors.Is(cause, ErrClosed) && !errors.Is(cause, ErrLost) {
		return overLeft
	}
	return overLost
}

// newHold makes the handle of an acquisition, which needs so many of its owners, and registers
// it with them.
func newHold(ctx context.Context, owners []*ownership, needs int, req *request, from origin) *Hold {
	var s *scope
	if len(owners) == 1 && !from.reentrant && owners[0].first.owners == nil {
		s = &owners[0].first
	} else {
		s = &scope{}
	}
	s.origin, s.owners, s.needs = from, owners, needs
	s.watchdog.Store(req.watchdog)
	h := &Hold{scope: s}
	h.bind(ctx)
	for _, o := range owners {
		o.enter(s)
	}
	if cause := s.lossCause(); cause != nil {
		s.lose(cause) // before the hold was there to be notified
	}
	return h
}

func (h *Hold) bind(parent context.Context) {
	s := h.scope
	if obs := s.observers(); len(obs.given) > 0 {
		parent = obs.observeHoldStart(parent, s.info())
		s.observed = context.WithoutCancel(parent)
	}
	h.derive(parent)
}

// derive is bind without notifying the observers.
func (h *Hold) derive(parent context.Context) {
	inner, cancel := context.WithCancelCause(parent)
	h.scope.cancel = cancel
	h.ctx = holdContext{Context: inner, hold: h, parent: parent}
}

// watch has the client notified when a hold is garbage-collected that is renewed, or that
// observers count. A fixed lease ends by itself, and is then lost; for observers its hold
// goes on until it is released.
func (h *Hold) watch() {
	s := h.scope
	if s.observed == nil && !s.watchdog.Load() {
		return
	}
	s.unwatched.Store(h)
	if s.over.Load() != notOver {
		s.collect()
	}
}

// Key is the Redis key of the lock, prefix included; of a [Client.MultiLock] the
// first one.
func (h *Hold) Key() string {
	if h == nil {
		return ""
	}
	return h.scope.owners[0].lease.Key
}

// Keys are the Redis keys of the lock: one, except for a [Client.MultiLock], and for a
// [Redlock] whose clients differ in their prefix.
func (h *Hold) Keys() []string {
	if h == nil {
		return nil
	}
	keys := make([]string, 0, len(h.scope.owners))
	for _, o := range h.scope.owners {
		if !slices.Contains(keys, o.lease.Key) {
			keys = append(keys, o.lease.Key)
		}
	}
	return keys
}

// Field is the holder's field in the lock's hash: "<client id>:<n>". It says in
// Redis and in traces who holds the lock. Of a [Redlock] it is that of the first server that
// granted it.
//
// A field is new for every acquire and every hand-off, and never comes back. While callers of one
// client pass the lock on in memory, Redis sees one holder: their holds have one field, one after the
// other. They differ in the Acquired time of [HoldInfo]. See Runs in the package comment.
func (h *Hold) Field() string {
	if h == nil {
		return ""
	}
	return h.scope.owners[0].lease.Field
}

// Token is the fencing token: a number that is larger for every later holder. 0
// where the lock has none, as a plain one that was acquired without [WithToken]. A re-entry has the
// token of the first acquisition, whether it asks for one or not; one that asks where that has none
// is [ErrInvalid].
func (h *Hold) Token() int64 {
	if h == nil {
		return 0
	}
	return h.scope.owners[0].token
}

// Remaining is how long the lock is still safe to rely on without another renewal.
// 0 or less after the end. No request is made.
func (h *Hold) Remaining() time.Duration {
	if h == nil || h.scope.ended.Load() {
		return 0
	}
	return h.scope.remaining(time.Now())
}

// remaining is how long as many leases as are needed last.
func (s *scope) remaining(now time.Time) time.Duration {
	if len(s.owners) == 1 {
		return s.owners[0].lease.Remaining(now)
	}
	left := make([]time.Duration, len(s.owners))
	for i, o := range s.owners {
		left[i] = o.lease.Remaining(now)
	}
	slices.Sort(left)
	return left[len(left)-s.needs]
}

// ownerOf is the live ownership of a client's key in this hold.
func (h *Hold) ownerOf(c *Client, key string) *ownership {
	if h.scope.ended.Load() {
		return nil
	}
	for _, o := range h.scope.owners {
		if o.client == c && o.lease.Key == key && o.lease.Alive(time.Now()) {
			return o
		}
	}
	return nil
}

func (h *Hold) checkClock(now time.Time) {
	if h.scope.ended.Load() {
		return
	}
	for _, o := range h.scope.owners {
		o.checkClock(now)
	}
}

// left is what [HoldResult] reports of the lease.
func (s *scope) left(now time.Time) time.Duration {
	if s.observed == nil {
		return 0
	}
	return max(s.remaining(now), 0)
}

// lossCause is why fewer leases are left than are needed; nil if there are enough.
func (s *scope) lossCause() error {
	if len(s.owners) == 1 {
		return s.owners[0].lease.Loss()
	}
	losses := make([]error, len(s.owners))
	for i, o := range s.owners {
		losses[i] = o.lease.Loss()
	}
	return beyond(len(s.owners)-s.needs, losses)
}

// beyond joins errors, of which some may be nil, if there are more than may be.
func beyond(spare int, errs []error) error {
	for _, err := range errs {
		if err != nil {
			spare--
		}
	}
	if spare >= 0 {
		return nil
	}
	return errors.Join(errs...)
}

// Handover moves the hold to work that outlives the caller, such as a goroutine
// that goes on after the response. The new context has the values of the old one
// but not its cancellation; the new Hold is the one to release. The old handle is
// inert: its Release is [ErrNotHeld] and frees nothing, its context ends with its
// parent but not with the lock, and an Acquire with it is a stranger's.
//
// Of a hold that has ended, Handover gives an ended context and an inert handle; of a
// nil one, which a handler has that runs without its lock, an ended context and nil.
func (h *Hold) Handover() (context.Context, *Hold) {
	if h == nil {
		ctx, cancel := context.WithCancelCause(context.Background()) //nolint:forbidigo // it has ended
		cancel(ErrNotHeld)
		return ctx, nil
	}
	old := h.scope
	s := &scope{origin: old.origin, owners: old.owners, needs: old.needs}
	moved := &Hold{scope: s}
	parent := context.WithoutCancel(h.ctx.parent)
	if !old.ended.CompareAndSwap(false, true) {
		s.ended.Store(true)
		moved.derive(parent)
		s.cancel(ErrNotHeld)
		return &moved.ctx, moved
	}
	h.unwatch()
	moved.bind(parent)
	s.watchdog.Store(old.watchdog.Swap(false))
	for _, o := range s.owners {
		o.replace(old, s)
	}
	old.finished(HoldResult{Moved: true, Remaining: old.left(time.Now())})
	switch cause := s.lossCause(); {
	case cause == nil:
	case old.over.Load() != notOver: // that was reported already
		s.over.Store(old.over.Load())
		s.cancel(cause)
	default:
		s.lose(cause)
	}
	moved.watch()
	return &moved.ctx, moved
}

// collect has the garbage collector watch the hold from now on.
func (s *scope) collect() {
	h := s.unwatched.Swap(nil)
	if h == nil {
		return
	}
	cleanup := runtime.AddCleanup(h, leaked, s)
	s.cleanup.Store(&cleanup)
}

// stopRenewal takes a hold out of those that its leases are renewed for, once.
func (s *scope) stopRenewal() {
	if !s.watchdog.CompareAndSwap(true, false) {
		return
	}
	for _, o := range s.owners {
		o.lease.StopRenewal()
	}
}

func (h *Hold) unwatch() {
	h.scope.unwatched.Store(nil)
	if cleanup := h.scope.cleanup.Load(); cleanup != nil {
		cleanup.Stop()
	}
}

// lose notifies the user and the observers that the hold is over, once.
func (s *scope) lose(cause error) {
	if s.ended.Load() || !s.over.CompareAndSwap(notOver, overBy(cause)) {
		return
	}
	s.cancel(cause)
	s.collect()
	if s.observed != nil && !s.leaked.Load() {
		s.observers().loss.Notify(s.observed, Loss{HoldInfo: s.info(), Cause: cause})
	}
}

// finished notifies the observers that the hold is over.
func (s *scope) finished(r HoldResult) {
	if s.observed == nil {
		return
	}
	r.HoldInfo = s.info()
	r.Held = time.Since(r.Acquired)
	over := s.over.Load()
	r.Lost = over == overLost || errors.Is(r.Err, ErrLost)
	r.Left = r.Left || over == overLeft && !r.Lost
	if r.Lost {
		r.Remaining = 0
	}
	s.observers().holdEnd.Notify(s.observed, r)
}

// leaked stops renewing a hold that nobody can release any more. Its key is left
// to its lease, and its context ends with that: that nobody refers to the handle
// does not prove that the work it guarded is over, which may wait for nothing but
// the context's Done.
func leaked(s *scope) {
	if s.ended.Load() || !s.leaked.CompareAndSwap(false, true) {
		return
	}
	s.stopRenewal()
	for _, o := range s.owners {
		o.leaveUnlessLast(s)
	}
	if s.observed != nil {
		s.observers().leak.Notify(s.observed, s.info())
	}
}
