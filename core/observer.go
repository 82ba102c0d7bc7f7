package core

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/notify"
)

// Outcome describes how an acquisition ended, in a low-cardinality word.
type Outcome string

// The outcomes of an acquisition.
const (
	OutcomeAcquired  Outcome = "acquired"  // the lock was taken
	OutcomeReentered Outcome = "reentered" // the context already held it
	OutcomeBusy      Outcome = "busy"      // the wait time ended
	OutcomeOverload  Outcome = "overload"  // too many waiters
	OutcomeBackend   Outcome = "backend"   // Redis did not answer, or answered with an error
	OutcomeKey       Outcome = "key"       // [ErrInvalid]: the key cannot be used for this lock, for instance because another kind of lock uses it
	OutcomeCanceled  Outcome = "canceled"  // the caller's context ended, the lock it carried was lost, or the client was closed
)

// Acquisition describes one call of Acquire or Do to the observers. It is passed by value; observers may keep
// it.
type Acquisition struct {
	Key   string // Redis key, prefix included; for a MultiLock the first one; for a [Client.GroupLock] see [Hold.Key]
	Keys  int    // number of keys, 1 except for a MultiLock and a GroupLock
	Kind  Kind
	Label string // the name given by [Label], or empty
	Start time.Time

	ClientID string // see [Client.ID]; for a Redlock the id of the first client

	all *[]string // the keys of a MultiLock or a GroupLock; a pointer keeps the struct comparable
}

// AllKeys returns every key, in the order that a MultiLock uses.
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
	HandedOff bool          // a releasing hold of this client gave the lock: handed off by a script, or passed on in memory
	BlockedBy string        // field of the holder at the last refusal, or of the holder that gave the lock; equals Field if the lock was passed on
	Field     string        // own holder field when acquired, see [Hold.Field]
	Token     int64         // fencing token; 0 where the kind has none
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
	Held        time.Duration
	Remaining   time.Duration // rest of the lease when the end began; 0 when lost, and when the client was closed before
	Lost        bool          // the lock was lost before the release
	HeldTooLong bool          // held for longer than its [MaxHold]; Lost reports whether the lease had also ended
	Left        bool          // the key stays until it expires: [Hold.Leave], or the client was closed before the release
	Moved       bool          // ended by [Hold.Handover]; another hold of the same lock continues
	HandedOff   bool          // the release gave the lock to a waiter of this client: handed it off by a script, or passed it on in memory
	Err         error         // the error that Release returned
}

// Contention describes the first time that an acquisition found the lock taken.
type Contention struct {
	Acquisition
	BlockedBy string        // holder field, empty when the acquisition queued behind local waiters only
	TTL       time.Duration // rest of the lease of the holder
}

// Renewal describes one renewal of one hold's lease. A lease with two holds is renewed while one of them needs that: the
// other one may be held for longer than its [MaxHold].
type Renewal struct {
	HoldInfo
	Err  error         // nil when renewed
	Late time.Duration // how much later than planned; 0 when in time
}

// Loss describes a hold that ended before the caller released it. The cause shows whether the lock is lost: after
// [ErrClosed] no client renews the lock, but the lock stays in Redis until its lease has expired. After [ErrHeldTooLong]
// the lock stays in Redis until its release, or until its lease has expired.
type Loss struct {
	HoldInfo
	Cause error // matches [ErrLost] (and then perhaps [ErrHeldTooLong]), or [ErrClosed] when the client was closed before the release
}

// BackendChange reports that locks can no longer be acquired from Redis, or that they can again.
type BackendChange struct {
	ClientID  string // see [Client.ID]
	Available bool
	Cause     error         // matches [ErrUnavailable]; nil when available. [ErrorText] is for logs
	Lasted    time.Duration // how long the outage lasted; 0 when one begins
}

// Observer contains functions that a client calls; see [WithObserver]. Functions may be nil. A client calls the
// functions synchronously and from many goroutines at once, and calls several observers in the order in which they were
// given. The functions must not block. A panic in a function does not affect the others. The first panic of each
// function is logged to [slog.Default]. If AcquireStart, Contention, AcquireEnd or HoldStart ends its goroutine, as
// t.FailNow does, no hold remains.
//
// If no observer has the function for an event, [slog.Default] gets a record of it in these cases: a loss (Loss), a leak
// of a renewed hold (Leak), a release that failed for another reason (HoldEnd), and a lock that was not acquired because
// another process has it (AcquireEnd). In 10 s there are at most 10 records of each message, and one of a busy lock.
type Observer struct {
	// Client is called with a new client. [Client.Close] calls closed at its end, unless closed is
	// nil.
	Client func(c *Client) (closed func())

	// AcquireStart is called before an acquisition starts. The acquisition continues with the context that AcquireStart
	// returns, so that spans nest.
	AcquireStart func(ctx context.Context, a Acquisition) context.Context

	// Contention is called at most once per acquisition, when it has to wait or is refused.
	Contention func(ctx context.Context, c Contention)

	// AcquireEnd is called when an acquisition has ended, with the context that AcquireStart returned.
	AcquireEnd func(ctx context.Context, r AcquireResult)

	// HoldStart is called when a hold begins. ctx is the context that the caller passed to Acquire, not the context of
	// the acquisition. The context that HoldStart returns becomes the parent of the hold's context.
	HoldStart func(ctx context.Context, h HoldInfo) context.Context

	// HoldEnd is called when a hold has ended: released, left, or moved by [Hold.Handover]. A moved hold
	// continues as another hold of the same lock, whose start and end are reported, too. To count locks, ignore
	// moved holds. A lost hold ends when it is released. Leak reports a hold that is never released.
	HoldEnd func(ctx context.Context, r HoldResult)

	// Renewal is called for every renewal of a watchdog lease.
	Renewal func(ctx context.Context, r Renewal)

	// Loss is called once per hold that was lost, held for longer than its [MaxHold], or left to its lease by
	// [Client.Close]. The context of the hold ends before Loss is called, so a handler may already release the hold.
	// HoldEnd can therefore be called before Loss, or at the same time.
	Loss func(ctx context.Context, l Loss)

	// Leak is called when a hold was garbage-collected without a Release, also if the hold was lost before. A
	// hold with a fixed lease is not checked until the lease has expired.
	Leak func(ctx context.Context, h HoldInfo)

	// Backend is called when an acquisition finds that Redis has become unavailable, and when the first acquisition
	// succeeds after that. A key that is not a lock does not count as an outage. Neither does a missing answer at the
	// end of a wait time that is shorter than the backend timeout. In both cases the acquisition ends with
	// [OutcomeBackend]. An outage that begins within 10 s after another one began is not reported. If no observer has a
	// function Backend, both changes are written to [slog.Default]. ctx is the context of the acquisition.
	Backend func(ctx context.Context, b BackendChange)

	// Rules observes the rules of the adapters over the client and the reloads of their rule files. It is an
	// *aspect.Observer of package core/aspect.
	Rules interface{ ObservesRules() }
}

// observers contains the functions of the observers given to WithObserver, one list for each event. An empty list costs
// one length check.
type observers struct {
	given        []*Observer // in order
	panics       *notify.Panics
	client       notify.List[func(*Client) func()]
	acquireStart notify.List[func(context.Context, Acquisition) context.Context]
	contention   notify.Event[Contention]
	acquireEnd   notify.Event[AcquireResult]
	holdStart    notify.List[func(context.Context, HoldInfo) context.Context]
	holdEnd      notify.Event[HoldResult]
	renewal      notify.Event[Renewal]
	loss         notify.Event[Loss]
	leak         notify.Event[HoldInfo]
	backend      notify.Event[BackendChange]
}

// add sorts the functions of one observer into the lists.
func (o *observers) add(v *Observer) {
	if o.panics == nil {
		o.panics = &notify.Panics{}
	}
	o.given = append(o.given, v)
	o.client.Add(v.Client)
	o.acquireStart.Add(v.AcquireStart)
	o.contention.Add(o.panics, v.Contention)
	o.acquireEnd.Add(o.panics, v.AcquireEnd)
	o.holdStart.Add(v.HoldStart)
	o.holdEnd.Add(o.panics, v.HoldEnd)
	o.renewal.Add(o.panics, v.Renewal)
	o.loss.Add(o.panics, v.Loss)
	o.leak.Add(o.panics, v.Leak)
	o.backend.Add(o.panics, v.Backend)
}

// observeClient reports a new client and returns the functions to call when it is closed.
func (o *observers) observeClient(c *Client) (closed []func()) {
	notify.Each(o.panics, o.client, func(observe func(*Client) func()) {
		if end := observe(c); end != nil {
			closed = append(closed, end)
		}
	})
	return closed
}

func (o *observers) observeAcquireStart(ctx context.Context, a Acquisition) context.Context {
	notify.Each(o.panics, o.acquireStart, func(observe func(context.Context, Acquisition) context.Context) {
		ctx = keepContext(ctx, observe(ctx, a)) //nolint:fatcontext // as many as there are observers
	})
	return ctx
}

func (o *observers) observeHoldStart(ctx context.Context, h HoldInfo) context.Context {
	notify.Each(o.panics, o.holdStart, func(observe func(context.Context, HoldInfo) context.Context) {
		ctx = keepContext(ctx, observe(ctx, h)) //nolint:fatcontext // as above
	})
	return ctx
}

// keepContext returns the context that an observer returned, or the old context if the observer
// returned nil.
func keepContext(old, returned context.Context) context.Context {
	if returned == nil {
		return old
	}
	return returned
}
