package core

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/holding"
)

// Hold is a successful acquisition. It is safe for concurrent use. A failed Acquire returns a nil *Hold, and so does
// [Held] if the context carries no lock, for instance in a handler that runs unlocked. On a nil or zero Hold, Release, Refresh
// and Leave return [ErrNotHeld], Handover returns a canceled context and nil, and the other methods return zero values.
type Hold struct {
	handle holding.Handle
	ctx    holdContext
}

// newHold returns the handle of a hold that is not bound and has not begun.
func newHold(inner *holding.Hold) *Hold { return &Hold{handle: holding.Handle{Hold: inner}} }

// bind gives the hold its context and notifies the observers of its start.
func (h *Hold) bind(parent context.Context) {
	var observed context.Context
	if observers := watcherOf(h.handle.Hold).observers; len(observers.given) > 0 {
		parent = observers.observeHoldStart(parent, infoOf(h.handle.Hold))
		observed = context.WithoutCancel(parent)
	}
	h.derive(parent, observed)
}

// abandon releases a hold that no caller gets, because an observer has ended the goroutine, for example by t.FailNow. begin
// begins the hold, if bind has not completed.
func (h *Hold) abandon(parent context.Context, begin func()) {
	defer func() { _ = h.Release(parent) }() //nolint:errcheck // no caller gets the error; Release continues in the background
	if h.ctx.hold == nil {
		h.derive(parent, nil)
		begin() // may notify another observer that ends the goroutine
	}
}

// derive gives the hold its context without notifying the observers.
func (h *Hold) derive(parent, observed context.Context) {
	inner, cancel := context.WithCancelCause(parent)
	h.handle.Hold.Bind(observed, cancel)
	h.ctx = holdContext{Context: inner, hold: h, parent: parent}
}

// watch makes the client notice when the hold is garbage-collected without a Release.
func (h *Hold) watch() { h.handle.Hold.Watch(&h.handle) }

// isNone reports whether h is nil or the zero value.
func (h *Hold) isNone() bool { return h == nil || h.handle.Hold == nil }

// Key returns the Redis key of the lock, prefix included. For a [Client.MultiLock] it is the first one.
func (h *Hold) Key() string {
	if h.isNone() {
		return ""
	}
	return h.first().Key()
}

func (h *Hold) first() *holding.Holder { return h.handle.Hold.Holders()[0] }

// Keys returns the Redis keys of the lock: one, except for a [Client.MultiLock], and for a
// [Redlock] whose clients differ in their prefix.
func (h *Hold) Keys() []string {
	if h.isNone() {
		return nil
	}
	holders := h.handle.Hold.Holders()
	keys := make([]string, 0, len(holders))
	for _, o := range holders {
		if !slices.Contains(keys, o.Key()) {
			keys = append(keys, o.Key())
		}
	}
	return keys
}

// Field returns the holder's field in the lock's hash: "<client id>:<n>". It identifies
// the holder in Redis and in traces. For a [Redlock] it is the field on the first server that
// granted the lock.
//
// A field is new for every acquire and every hand-off, and never comes back. While callers of one
// client pass the lock on in memory, Redis sees one holder: their holds share one field, one after the
// other. They differ in the Acquired time of [HoldInfo]. See Runs in the package comment.
func (h *Hold) Field() string {
	if h.isNone() {
		return ""
	}
	return h.first().Field()
}

// Token returns the fencing token: a number that is larger for every later holder. It is 0 if the lock has none, such
// as a plain lock that was acquired without [WithToken]. A re-entry has the token of the first acquisition, even
// without WithToken. If a re-entry asks for a token and the first acquisition has none, Acquire returns [ErrInvalid].
func (h *Hold) Token() int64 {
	if h.isNone() {
		return 0
	}
	return h.first().Token()
}

// Remaining returns how long the caller can rely on the lock without another renewal. It returns 0
// or less after the hold has ended. It sends nothing to Redis.
func (h *Hold) Remaining() time.Duration {
	if h.isNone() {
		return 0
	}
	return h.handle.Hold.Remaining(time.Now())
}

// Release ends the hold. The context of the hold ends first, with the cause [ErrReleased], so that
// work with this context does not outlive the lock. If this is the last hold of an acquisition,
// Release frees the lock or gives it to the next waiter of this client (see Runs in the package
// comment). Release of an inner hold only lowers the count.
//
// Release is sent even if ctx is done. It returns when Redis has answered. It gives up if Redis is silent for the
// backend timeout, refuses every command for that long, or has not answered after eight backend timeouts. The time for
// which Release waits for another operation of this holder counts.
//
// nil means that this holder will never appear in Redis again. If the release has passed the lock
// on, its field belongs to the next holder. Passing on does not ask Redis, and so does not detect
// that the lock was deleted or forced away.
//
//   - [ErrLost] means that the lock was lost before.
//   - [ErrHeldTooLong], which matches ErrLost, means that the hold lasted for longer than its [MaxHold]. If the lease had
//     not ended yet, the release has freed the lock or passed it on, as with nil.
//   - [ErrNotHeld] means that this hold was released already, or is nil. The lock of another holder is not touched.
//   - [ErrUnavailable] means that Redis did not confirm the release, which continues in the background until the lease
//     has expired.
//   - [ErrClosed] means that the client was closed before the release: the key expires with its
//     lease.
func (h *Hold) Release(ctx context.Context) error {
	if h.isNone() {
		return ErrNotHeld
	}
	return publicError(h.handle.Hold.Release(ctx))
}

// Refresh gives the lock a new lease, counted from now. The new lease may be longer or shorter than
// the old one, but is never shorter than another hold of the same acquisition needs. The renewal of
// this hold stops, because the new lease is fixed. leaseTime is 1 ms to [MaxDuration]. If the lease
// ends earlier than before, waiters in all processes are notified.
//
// For two minutes after a command of this holder got no answer, Refresh makes the lease only longer, never shorter,
// because that command may still be executed. Refresh then returns nil as usual. If Redis does not answer, Refresh
// takes at most the backend timeout. After [ErrUnavailable] the hold has the earlier of the old and the new deadline,
// and is not renewed any more. If the new lease expires before the answer comes, Refresh returns nil, even if the lock
// was deleted or forced away before: the hold has ended either way.
//
// A fixed lease is not subject to [MaxHold]. After [ErrHeldTooLong] the lease is unchanged.
func (h *Hold) Refresh(ctx context.Context, leaseTime time.Duration) error {
	if h.isNone() || h.handle.Hold.Ended() {
		return ErrNotHeld
	}
	if err := checkLease("Refresh", leaseTime); err != nil {
		return err
	}
	return publicError(h.handle.Hold.Refresh(ctx, leaseTime.Truncate(time.Millisecond)))
}

// Leave ends the hold without freeing the lock: the key stays for d, as a marker that no client holds, and then
// expires. The marker has a different holder field, so that a late command of the holder cannot prolong the marker. If
// the marker ends earlier than the lease would have, waiters in all processes are notified. Only the last hold of an
// acquisition can leave. For an inner hold Leave returns [ErrInvalid], and the hold continues.
//
// Otherwise the hold and its context end as with [Hold.Release], even if Redis refuses the marker or does not answer,
// or ctx is done. nil means that the marker was set. d counts from the moment at which Redis executes the command.
// Leave returns the same errors as Release, but does not continue in the background. After [ErrUnavailable] the key
// expires with the lease or, if Redis executes the command late, d after that.
func (h *Hold) Leave(ctx context.Context, d time.Duration) error {
	if h.isNone() || h.handle.Hold.Ended() {
		return ErrNotHeld
	}
	if err := checkLease("Leave", d); err != nil {
		return err
	}
	return publicError(h.handle.Hold.Leave(ctx, d.Truncate(time.Millisecond)))
}

// Handover moves the hold to work that outlives the caller, such as a goroutine that goes on after the response. The
// new context has the values of the old one but not its cancellation. The caller releases the new Hold. The old Hold no
// longer has an effect: its Release returns [ErrNotHeld] and frees nothing. The old context still ends with its parent
// but not with the lock, and an Acquire with the old context does not re-enter. A [MaxHold] still counts from the
// acquisition.
//
// If the hold has ended, Handover returns a canceled context and a Hold without an effect. If the hold is nil, because
// a handler runs without its lock, Handover returns a canceled context and nil.
func (h *Hold) Handover() (context.Context, *Hold) {
	if h.isNone() {
		ctx, cancel := context.WithCancelCause(context.Background()) //nolint:forbidigo // canceled at once
		cancel(ErrNotHeld)
		return ctx, nil
	}
	old := h.handle.Hold
	to, moved := old.Move()
	next, parent := newHold(to), context.WithoutCancel(h.ctx.parent)
	if !moved {
		next.derive(parent, nil)
		to.Cancel(failure.NotHeld)
		return &next.ctx, next
	}
	complete, given := func() { old.CompleteMove(to) }, false
	defer func() {
		if !given {
			next.abandon(parent, complete)
		}
	}()
	next.bind(parent)
	complete()
	next.watch()
	given = true
	return &next.ctx, next
}

// infoOf returns the description of a hold for the observers.
func infoOf(h *holding.Hold) HoldInfo {
	info, first := h.Info(), h.Holders()[0]
	kind := Kind(first.Kind().Name)
	if info.Redlock {
		kind = KindRedlock
	}
	return HoldInfo{
		Acquisition: Acquisition{
			Key: first.Key(), Keys: int(info.Keys), Kind: kind, Label: info.Label, Start: info.Start,
			ClientID: watcherOf(h).clientID, all: info.AllKeys,
		},
		Field:     first.Field(),
		Token:     first.Token(),
		Reentrant: info.Reentrant,
		Lease:     info.Lease,
		Watchdog:  info.Renewed,
		Acquired:  info.Acquired(),
	}
}

// watcher notifies the observers of a client of the events of its holds.
type watcher struct {
	observers  *observers
	clientID   string
	unobserved *unobserved
}

// watcherOf returns the watcher of a hold.
func watcherOf(h *holding.Hold) *watcher { return h.Watcher().(*watcher) } //nolint:errcheck,forcetypeassert // no other type is given

func (w *watcher) Renewed(h *holding.Hold, err error, late time.Duration) {
	if event := &w.observers.renewal; h.Observed() != nil && event.Observed() {
		event.Notify(h.Observed(), Renewal{HoldInfo: infoOf(h), Err: unavailable(err), Late: late})
	}
}

func (w *watcher) Lost(h *holding.Hold, cause error) {
	switch {
	case !w.observers.loss.Observed():
		w.unobserved.loss(observedIn(h), h, publicError(cause))
	case h.Observed() != nil:
		w.observers.loss.Notify(h.Observed(), Loss{HoldInfo: infoOf(h), Cause: publicError(cause)})
	}
}

func (w *watcher) Leaked(h *holding.Hold) {
	switch {
	case !w.observers.leak.Observed():
		w.unobserved.leak(observedIn(h), h)
	case h.Observed() != nil:
		w.observers.leak.Notify(h.Observed(), infoOf(h))
	}
}

func (w *watcher) Ended(h *holding.Hold, how holding.End) {
	if how.Err != nil && !w.observers.holdEnd.Observed() {
		w.unobserved.failedRelease(observedIn(h), h, &how)
	}
	if h.Observed() == nil {
		return
	}
	r := HoldResult{
		HoldInfo: infoOf(h), Remaining: how.Remaining, Lost: how.Lost, Left: how.Left, Moved: how.Moved,
		HeldTooLong: how.HeldTooLong, HandedOff: how.HandedOff, Err: publicError(how.Err),
	}
	r.Held = time.Since(r.Acquired)
	w.observers.holdEnd.Notify(h.Observed(), r)
}

// observedIn returns the context for the observers of a hold, or one without values.
func observedIn(h *holding.Hold) context.Context {
	if ctx := h.Observed(); ctx != nil {
		return ctx
	}
	return context.Background() //nolint:forbidigo // without observers a hold keeps no context
}
