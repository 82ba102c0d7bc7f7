package core

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/notify"
)

// Outcome is how an acquisition ended, as a low-cardinality word.
type Outcome string

// The outcomes of an acquisition.
const (
	OutcomeAcquired  Outcome = "acquired"  // the lock was taken
	OutcomeReentered Outcome = "reentered" // the context already held it
	OutcomeBusy      Outcome = "busy"      // the wait time was over
	OutcomeOverload  Outcome = "overload"  // too many waiters
	OutcomeBackend   Outcome = "backend"   // Redis did not answer, or with an error
	OutcomeKey       Outcome = "key"       // [ErrInvalid]: the key is not one for this lock, such as that of another kind of lock
	OutcomeCanceled  Outcome = "canceled"  // the caller's context ended, the lock it carried was lost, or the client was closed
)

// Acquisition describes one call of Acquire or Do to the observers. It is given
// by value; observers may keep it.
type Acquisition struct {
	Key   string // Redis key, prefix included; of a MultiLock the first one
	Keys  int    // how many keys, 1 except for a MultiLock
	Kind  Kind
	Label string // what [Label] said, else empty
	Start time.Time

	ClientID string // see [Client.ID]; of a Redlock the first client

	all *[]string // the keys of a MultiLock; a pointer keeps the struct comparable
}

// AllKeys returns every key, in the order in which a MultiLock has them.
func (a *Acquisition) AllKeys() []string {
	if a.all == nil {
		return []string{a.Key}
	}
	return slices.Clone(*a.all)
}

// AcquireResult describes how an acquisition ended.
type AcquireResult struct {
	Acquisition
	Outcome   Outcome
	Err       error // nil when acquired or reentered
	Waited    time.Duration
	Contended bool          // the first attempt was refused, or others were queued before it
	Attempts  int           // acquire scripts sent by this call
	RoundTrip time.Duration // time of the attempt that succeeded; 0 if none did
	HandedOff bool          // received from a releasing hold of this client: handed off by a script, or passed on in memory
	BlockedBy string        // field of the holder seen at the last refused attempt, or that the lock came from; equals Field if it was passed on
	Field     string        // own holder field when acquired, see [Hold.Field]
	Token     int64         // fencing token; 0 where the kind has none

	acquired time.Time
}

// HoldInfo describes a hold to the observers.
type HoldInfo struct {
	Acquisition
	Field     string // holds that pass the lock on have one field, one after the other: see [Hold.Field]
	Token     int64
	Reentrant bool          // an inner hold of a lock that the context already held
	Lease     time.Duration // the configured lease
	Watchdog  bool          // the lease is renewed
	Acquired  time.Time
}

// HoldResult describes how a hold ended.
type HoldResult struct {
	HoldInfo
	Held      time.Duration
	Remaining time.Duration // of the lease, when the end began; 0 when lost, and when the client was closed before
	Lost      bool          // the lock had ended under its holder
	Left      bool          // the key stays until it expires: [Hold.Leave], or the client was closed under the hold
	Moved     bool          // ended by [Hold.Handover]; another hold goes on for the same lock
	HandedOff bool          // the release gave the lock to a waiter of this client: handed it off by a script, or passed it on in memory
	Err       error         // what Release returned
}

// Contention describes the first time that an acquisition found the lock taken.
type Contention struct {
	Acquisition
	BlockedBy string        // holder field, empty when the acquisition queued behind local waiters only
	TTL       time.Duration // what was left of the lease in the way
}

// Renewal describes one renewal of one hold's lease.
type Renewal struct {
	HoldInfo
	Err  error         // nil when renewed
	Late time.Duration // how much later than planned; 0 when in time
}

// Loss describes a hold that ended under its holder. The cause says whether the lock is lost:
// after [ErrClosed] nobody renews it any more, but it stays until its lease is over.
type Loss struct {
	HoldInfo
	Cause error // matches [ErrLost], or [ErrClosed] when the client was closed under the hold
}

// Leak describes a hold that was garbage-collected without a Release.
type Leak struct {
	HoldInfo
}

// BackendChange says that locks cannot be acquired from Redis any more, or again.
type BackendChange struct {
	ClientID  string // see [Client.ID]
	Available bool
	Cause     error         // matches [ErrUnavailable]; nil when available. [ErrorText] is for logs
	Lasted    time.Duration // of the outage that is over; 0 when one begins
}

// The observers. Each has one method; a value given to [WithObserver] implements
// one or more of them. They are called synchronously, in the order in which they
// were given, from many goroutines at once; a panic in one is contained, the others
// still run, and the first panic of each type is logged to [slog.Default]. They must not block.
type (
	// ClientObserver is notified of a client that [New] has made. [Client.Close] calls closed when the client
	// has ended, unless closed is nil.
	ClientObserver interface {
		ObserveClient(c *Client) (closed func())
	}

	// AcquireStartObserver is notified before an acquisition starts. The context that
	// it returns is the one the acquisition goes on with, so that spans nest.
	AcquireStartObserver interface {
		ObserveAcquireStart(ctx context.Context, a Acquisition) context.Context
	}

	// ContentionObserver is notified at most once per acquisition, when it has to wait
	// or is refused.
	ContentionObserver interface {
		ObserveContention(ctx context.Context, c Contention)
	}

	// AcquireEndObserver is notified when an acquisition ended, with the context that
	// the AcquireStartObservers returned.
	AcquireEndObserver interface {
		ObserveAcquireEnd(ctx context.Context, r AcquireResult)
	}

	// HoldStartObserver is notified when a hold begins. ctx is the caller's context
	// given to Acquire, not that of the acquisition. The context that it returns
	// becomes the parent of the hold's context.
	HoldStartObserver interface {
		ObserveHoldStart(ctx context.Context, h HoldInfo) context.Context
	}

	// HoldEndObserver is notified when a hold ended: released, left, or moved by
	// [Hold.Handover], at once, to another hold of the same lock, whose start and end
	// are reported, too. To count locks, leave moved ones out. A lost hold ends when it is
	// released. Of one that never is, [LeakObserver] tells.
	HoldEndObserver interface {
		ObserveHoldEnd(ctx context.Context, r HoldResult)
	}

	// RenewalObserver is notified of every renewal of a watchdog lease.
	RenewalObserver interface {
		ObserveRenewal(ctx context.Context, r Renewal)
	}

	// LossObserver is notified when a hold was lost, or left to its lease by [Client.Close],
	// once per hold. The hold's context has ended before, so a handler that reacts to it may release the hold meanwhile: the
	// notification of the hold's end can come first, or at the same time.
	LossObserver interface {
		ObserveLoss(ctx context.Context, l Loss)
	}

	// BackendObserver is notified when an acquisition finds Redis unavailable that was not
	// before, and of the first one that succeeds afterwards. A key that holds something other than
	// a lock is no outage, nor is an answer that has not come when a wait time ends that is shorter
	// than the backend timeout; each such acquisition ends with [OutcomeBackend]. Outages that begin within
	// 10 s after another began are not notified. Without an observer of this kind both are
	// written to [slog.Default]. ctx is that of the acquisition.
	BackendObserver interface {
		ObserveBackend(ctx context.Context, b BackendChange)
	}

	// LeakObserver is notified when a hold was garbage-collected without a Release, also
	// one that was lost before. One with a fixed lease is not looked for until that is over.
	LeakObserver interface {
		ObserveLeak(ctx context.Context, l Leak)
	}
)

// observers is the list given to WithObserver, split by interface at start-up. A
// nil slice costs one length check.
type observers struct {
	given        []any // in order
	panics       *notify.Panics
	client       notify.List[ClientObserver]
	acquireStart notify.List[AcquireStartObserver]
	contention   notify.List[ContentionObserver]
	acquireEnd   notify.List[AcquireEndObserver]
	holdStart    notify.List[HoldStartObserver]
	holdEnd      notify.List[HoldEndObserver]
	renewal      notify.List[RenewalObserver]
	loss         notify.List[LossObserver]
	leak         notify.List[LeakObserver]
	backend      notify.List[BackendObserver]
}

// add sorts one observer into the lists.
func (o *observers) add(v any) error {
	if o.panics == nil {
		o.panics = &notify.Panics{}
	}
	o.given = append(o.given, v)
	known := []bool{
		o.client.Add(v), o.acquireStart.Add(v), o.contention.Add(v), o.acquireEnd.Add(v), o.holdStart.Add(v), o.holdEnd.Add(v),
		o.renewal.Add(v), o.loss.Add(v), o.leak.Add(v), o.backend.Add(v),
	}
	if !slices.Contains(known, true) && !observesRules(v) {
		return invalidf("WithObserver: %T implements none of the observer interfaces (AcquireEndObserver, HoldEndObserver, … of core, DecisionObserver, … of core/aspect)", v)
	}
	return nil
}

// observesRules reports whether v has a method of an observer of rules, whose interfaces are those of package aspect.
// The names are constants so that the linker still drops the methods of other types.
func observesRules(v any) bool {
	t := reflect.TypeOf(v)
	if t == nil {
		return false
	}
	_, rule := t.MethodByName("ObserveRule")
	_, warning := t.MethodByName("ObserveWarning")
	_, decision := t.MethodByName("ObserveDecision")
	_, failure := t.MethodByName("ObserveFailure")
	_, unlocked := t.MethodByName("ObserveUnlocked")
	_, reload := t.MethodByName("ObserveReload")
	return rule || warning || decision || failure || unlocked || reload
}

// observeClient notifies of a client that begins, and returns the functions to call when it has ended.
func (o *observers) observeClient(c *Client) (closed []func()) {
	notify.Each(o.panics, o.client, func(obs ClientObserver) {
		if end := obs.ObserveClient(c); end != nil {
			closed = append(closed, end)
		}
	})
	return closed
}

func (o *observers) observeAcquireStart(ctx context.Context, a Acquisition) context.Context {
	notify.Each(o.panics, o.acquireStart, func(obs AcquireStartObserver) { ctx = keepContext(ctx, obs.ObserveAcquireStart(ctx, a)) }) //nolint:fatcontext // as many as there are observers
	return ctx
}

func (o *observers) observeHoldStart(ctx context.Context, h HoldInfo) context.Context {
	notify.Each(o.panics, o.holdStart, func(obs HoldStartObserver) { ctx = keepContext(ctx, obs.ObserveHoldStart(ctx, h)) }) //nolint:fatcontext // as above
	return ctx
}

// keepContext guards against an observer that returns nil.
func keepContext(old, returned context.Context) context.Context {
	if returned == nil {
		return old
	}
	return returned
}

func (o *observers) observeContention(ctx context.Context, c Contention) {
	notify.Each(o.panics, o.contention, func(obs ContentionObserver) { obs.ObserveContention(ctx, c) })
}

func (o *observers) observeAcquireEnd(ctx context.Context, r AcquireResult) {
	notify.Each(o.panics, o.acquireEnd, func(obs AcquireEndObserver) { obs.ObserveAcquireEnd(ctx, r) })
}

func (o *observers) observeHoldEnd(ctx context.Context, r HoldResult) {
	notify.Each(o.panics, o.holdEnd, func(obs HoldEndObserver) { obs.ObserveHoldEnd(ctx, r) })
}

func (o *observers) observeRenewal(ctx context.Context, r Renewal) {
	notify.Each(o.panics, o.renewal, func(obs RenewalObserver) { obs.ObserveRenewal(ctx, r) })
}

func (o *observers) observeLoss(ctx context.Context, l Loss) {
	notify.Each(o.panics, o.loss, func(obs LossObserver) { obs.ObserveLoss(ctx, l) })
}

func (o *observers) observeLeak(ctx context.Context, l Leak) {
	notify.Each(o.panics, o.leak, func(obs LeakObserver) { obs.ObserveLeak(ctx, l) })
}

func (o *observers) observeBackend(ctx context.Context, b BackendChange) {
	notify.Each(o.panics, o.backend, func(obs BackendObserver) { obs.ObserveBackend(ctx, b) })
}
