package core

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Lock names a lock of a [Client]. It is a small immutable value without state of
// its own: make it where it is needed, share it, drop it. Every acquisition has
// its own [Hold]. It comes from a [Client] or from [Redlock]: the zero value cannot be used.
type Lock struct {
	client *Client
	kind   *redisstore.Kind
	name   string
	names  []string // of a MultiLock, sorted; else nil
	demand string   // of a semaphore: see [redisstore.Terms], or the operation that takes some

	clients []*Client // of a Redlock; else nil
}

// Lock names a reentrant lock: Redisson's RLock, with which it shares the layout
// in Redis. Whether the name is usable is checked by Acquire.
func (c *Client) Lock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Reentrant, name: name}
}

// FencedLock names a lock whose holds carry a fencing token: Redisson's RFencedLock, with
// which it shares the layout in Redis and the counter of tokens. [Hold.Token] is a number
// that is larger for every later holder, so that a store which remembers the largest one
// that it has seen can refuse the late write of a holder that was paused beyond its lease.
// A re-entry has the token of the hold that it re-enters. Else it is as [Client.Lock]; the
// two must not share a name, which within one client is [ErrInvalid] while the name is in
// use.
//
// The counter is a key of its own, "redisson_lock_token:{name}", without a TTL. A token is at
// least the time of the server in microseconds, so that tokens go on to rise when the counter
// was deleted or lost; Redisson's, which only count, go on from there.
func (c *Client) FencedLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Fenced, name: name}
}

// SpinLock names a lock without messages: Redisson's RedissonSpinLock, with which it shares
// the layout in Redis. Who waits in another process attempts again after 1 ms, and then less
// and less often, up to every 50 ms, jittered; the callers of one client queue and pass the
// lock on as those of [Client.Lock]. It is for very many locks with little contention, where
// subscriptions and messages would be a burden. It must not share a name with another kind,
// whose waiters it would not wake.
func (c *Client) SpinLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Spin, name: name}
}

// MultiLock names several locks that are taken together or not at all. Names may
// come in any order and repeat; at least one is needed. Several callers that name
// the same locks in different orders do not deadlock. Where all names share a slot,
// which is always so outside a Cluster, they are taken by one script. An endpoint in front of
// several servers that refuses the script gets the keys one by one, as a Cluster does.
//
// Who waits for several locks holds none of them meanwhile, and stands in nobody's way
// at those that are free. Among the callers of one client it keeps its place by its age,
// but lets others pass at one lock while another one is taken. When others were first 16
// times, or for a second, it takes the locks one after the other and holds what it has
// while it waits for the next: for a quarter of the time that it has waited so far, 1 s
// at most, and up to four times as long while the next one passes from holder to holder.
// Then it gives all back and waits with empty hands again.
//
// A lease or a watchdog counts from the moment when the last lock is acquired. There is no
// fencing token: [WithToken] is [ErrInvalid] for several names.
func (c *Client) MultiLock(names ...string) Lock {
	sorted := append([]string{}, names...) // not nil: a MultiLock, if an empty one
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) == 1 {
		return c.Lock(sorted[0])
	}
	return Lock{client: c, kind: c.kinds.Reentrant, names: sorted}
}

// keys are the Redis keys of the lock, checked.
func (l Lock) keys() ([]string, error) {
	if l.clients != nil {
		_, err := l.redlock(nil)
		return nil, err
	}
	names := l.names
	if names == nil {
		names = []string{l.name}
	}
	if len(names) == 0 {
		return nil, invalidf("MultiLock without names: want at least one")
	}
	keys := make([]string, len(names))
	for i, name := range names {
		key, err := l.client.key(l.kind, name)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	return l.client.cfg.inOrder(keys), nil
}

// Acquire takes the lock, waiting as [WaitTime] says, for as long as [LeaseTime]
// says. The returned context carries the ownership: an Acquire of the same lock
// with it, through the same client, re-enters. It ends with the cause [ErrLost],
// [ErrReleased] or [ErrClosed], or with ctx. After Release go on with ctx.
//
// On error it returns ctx as given and a nil *Hold. The error matches one of
// [ErrNotAcquired] (and the context's error, if that is why), [ErrUnavailable],
// [ErrTooManyWaiters], [ErrClosed] and [ErrInvalid]; when ctx carries the lock also
// [ErrLost], if it was lost, or [ErrNotHeld], if it was released meanwhile. Redis that
// does not answer is never taken for a lock that is taken: it is ErrUnavailable within
// the backend timeout, or within the wait time if that is shorter. Redis that answers
// that it cannot serve just now, such as LOADING, BUSY or NOREPLICAS, is waited for within
// the wait time.
//
// Uncontended it costs one round trip, and so does Release. Prefer [Lock.Do].
func (l Lock) Acquire(ctx context.Context, opts ...AcquireOption) (context.Context, *Hold, error) {
	hold, err := l.acquire(ctx, opts)
	if err != nil {
		return ctx, nil, err
	}
	hold.watch()
	return &hold.ctx, hold, nil
}

// Do takes the lock, runs fn with the context of the hold, and releases it, also
// when fn panics or calls [runtime.Goexit]. It returns the error of Acquire; else
// fn's error, joined with [ErrLost] if the lock was lost while fn ran; else the
// error of the release. fn may release the hold early or hand it over; without one nothing
// is acquired, and the error is [ErrInvalid].
func (l Lock) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...AcquireOption) (err error) {
	if fn == nil {
		return l.nothingToDo()
	}
	hold, err := l.acquire(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = hold.conclude(ctx, err) }()
	return fn(&hold.ctx)
}

// nothingToDo is the error of a Do without a function; what is wrong with the name comes first.
func (l Lock) nothingToDo() error {
	if _, err := l.keys(); err != nil {
		return err
	}
	return invalidf("Do without a function: want one to run while the lock is held, or call Acquire")
}

// conclude releases at the end of Do and merges the errors.
func (h *Hold) conclude(ctx context.Context, err error) error {
	released := h.Release(ctx)
	switch {
	case released == nil:
		return err
	case errors.Is(released, ErrLost) && err != nil && !errors.Is(err, ErrLost):
		return errors.Join(err, released)
	case errors.Is(released, ErrNotHeld) && !errors.Is(released, ErrLost):
		return err // fn released it itself, or handed it over
	case err != nil:
		return err
	default:
		return released
	}
}

// acquire is Acquire without the guard against leaks.
func (l Lock) acquire(ctx context.Context, opts []AcquireOption) (*Hold, error) {
	if l.clients != nil {
		return l.acquireOnMost(ctx, opts)
	}
	c := l.client
	a := c.newAcquisition()
	if err := a.read(l, opts); err != nil {
		return nil, err
	}
	if err := c.callers.enter(); err != nil {
		return nil, err
	}
	defer c.callers.exit()
	hold, err := a.run(ctx)
	if err == nil && a.unshared() {
		c.spare.Put(a)
	}
	return hold, err
}

// newAcquisition gives an empty one.
func (c *Client) newAcquisition() *acquisition {
	a, ok := c.spare.Get().(*acquisition)
	if !ok {
		return &acquisition{client: c}
	}
	*a = acquisition{client: c}
	return a
}

// unshared reports whether nobody else can know the acquisition: it took one key
// without waiting.
func (a *acquisition) unshared() bool {
	return len(a.keys) == 1 && !a.report.Contended && a.first.wait.first.Reusable()
}

type acquisition struct {
	client *Client
	keys   []string
	key    [1]string // room for the usual single key
	req    request
	report AcquireResult
	first  attempt // room for the usual single attempt

	redlock *redlock // that takes a Redlock; else nil
	quorum  int      // of a Redlock; else 0: all are needed
}

// read checks what was asked for.
func (a *acquisition) read(l Lock, opts []AcquireOption) (err error) {
	if l.names == nil {
		a.keys = a.key[:]
		a.key[0], err = l.client.key(l.kind, l.name)
	} else {
		a.keys, err = l.keys()
	}
	if err != nil {
		return err
	}
	return l.readRequest(&a.req, opts)
}

// run is the acquisition, observed from start to end.
func (a *acquisition) run(ctx context.Context) (*Hold, error) {
	c := a.client
	a.report.Acquisition = Acquisition{
		Key: a.keys[0], Keys: len(a.keys), Kind: cmp.Or(a.report.Kind, Kind(a.req.kind.Name)), Label: a.req.label, Start: time.Now(),
		ClientID: c.id,
	}
	if len(a.keys) > 1 {
		keys := a.keys
		a.report.all = &keys
	}
	observed := c.cfg.observers.observeAcquireStart(ctx, a.report.Acquisition)
	owners, err := a.take(observed)
	if err != nil {
		c.report(observed, &a.report, err)
		return nil, err
	}
	a.report.Field, a.report.Token = owners[0].lease.Field, owners[0].token
	c.report(observed, &a.report, nil)
	if a.req.kind.Holds == redisstore.Unheld {
		return nil, nil //nolint:nilnil // there is nothing to hold
	}
	return newHold(ctx, owners, cmp.Or(a.quorum, len(owners)), &a.req, a.origin()), nil
}

// take is takeAll, and takes in what has become of it; a Redlock does so for each server.
func (a *acquisition) take(ctx context.Context) ([]*ownership, error) {
	if a.redlock != nil {
		return a.redlock.take(ctx)
	}
	owners, err := a.takeAll(ctx)
	if err != nil {
		err = cmp.Or(a.client.lost(ctx, a.keys), err) // that is what has happened, whatever noticed it first
	}
	a.client.backend.note(ctx, a.keys[0], a.report.Start, err)
	return owners, err
}

// report notifies the observers how an acquisition ended.
func (c *Client) report(ctx context.Context, r *AcquireResult, err error) {
	if r.Outcome == "" {
		r.Outcome = outcomeOf(ctx, err)
	}
	if !c.cfg.observers.acquireEnd.Observed() {
		return
	}
	r.Err = err
	r.Waited = time.Since(r.Start)
	c.cfg.observers.acquireEnd.Notify(ctx, *r)
}

// outcomeOf returns the outcome of an acquisition in ctx. The cause of an outage may match the errors of a context
// although ctx has not ended: the timeout of a dialer does.
func outcomeOf(ctx context.Context, err error) Outcome {
	switch {
	case err == nil:
		return OutcomeAcquired
	case errors.Is(err, ErrTooManyWaiters):
		return OutcomeOverload
	case errors.Is(err, ErrInvalid):
		return OutcomeKey
	case errors.Is(err, ErrClosed), errors.Is(err, ErrNotHeld):
		return OutcomeCanceled
	case errors.Is(err, ErrUnavailable) && ctx.Err() == nil:
		return OutcomeBackend
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return OutcomeCanceled
	case errors.Is(err, ErrUnavailable):
		return OutcomeBackend
	default:
		return OutcomeBusy
	}
}

// takeAll gets an ownership for every key: those that ctx owns are entered again.
func (a *acquisition) takeAll(ctx context.Context) ([]*ownership, error) {
	c := a.client
	if ctx.Err() != nil {
		return nil, &NotAcquiredError{Key: a.keys[0], Cause: contextCause(ctx)}
	}
	now, err := a.reach(ctx)
	if err != nil {
		return nil, err
	}
	if len(a.keys) > 1 {
		return c.takeMany(ctx, a.keys, &a.req, &a.report)
	}
	o, under, err := c.ownedAs(ctx, a.keys[0], &a.req)
	switch {
	case err != nil:
		return nil, err
	case o != nil:
		return a.enterAgain(ctx, o)
	}
	a.req.under = under
	a.first = c.newAttempt(ctx, a.keys[0], &a.req, &a.report, now)
	if o, err = a.first.run(ctx); err != nil {
		return nil, err
	}
	a.report.acquired = a.first.now
	if a.req.kind.Holds != redisstore.Unheld {
		o.watch(a.req.watchdog, a.first.now)
	}
	return o.self[:], nil
}

// enterAgain adds a hold to the ownership of its only key.
func (a *acquisition) enterAgain(ctx context.Context, o *ownership) ([]*ownership, error) {
	if err := a.client.reenter(ctx, o, &a.req, &a.report); err != nil {
		return nil, err
	}
	a.report.Outcome, a.report.acquired = OutcomeReentered, time.Now()
	return o.self[:], nil
}
