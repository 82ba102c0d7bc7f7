package core

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core/internal/acquire"
	"github.com/interlock-go/interlock/core/internal/holding"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Lock names a lock of a [Client]. It is a small immutable value without a state: create it where it is needed,
// share it, drop it. Every acquisition has its own [Hold]. A Lock comes from a [Client] or from [Redlock]: with the
// zero value, every call is [ErrInvalid].
type Lock struct {
	client *Client
	kind   *redisstore.Kind
	name   string
	names  []string // names of a MultiLock, or values of a GroupLock, sorted; nil for a single one
	group  string   // group of a GroupLock, whose values are name or names
	demand string   // permits of a semaphore: see [redisstore.Terms]; or the operation of a plain semaphore
	once   bool     // the context of a holder cannot acquire the lock again

	clients []*Client // clients of a Redlock; otherwise nil
}

// keys checks the names of the lock and returns its Redis keys.
func (l Lock) keys() ([]string, error) {
	names := l.names
	if names == nil {
		names = []string{l.name}
	}
	switch {
	case len(names) == 0 && l.kind.HasMembers():
		return nil, invalidf("GroupLock(%.40q) without values: want at least one", l.group)
	case len(names) == 0:
		return nil, invalidf("MultiLock without names: want at least one")
	}
	keys := make([]string, len(names))
	for i, name := range names {
		key, err := l.keyOf(name)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	if l.kind.HasMembers() {
		slices.Sort(keys) // hashes have another order than values
		return slices.Compact(keys), nil
	}
	return l.client.cfg.sortKeys(keys), nil
}

// isZero reports whether the lock comes neither from a client that New returned nor from Redlock.
func (l Lock) isZero() bool { return l.clients == nil && (l.client == nil || l.kind == nil) }

// errZero refuses the zero value of a Lock, and a lock of the zero value of a Client.
var errZero = invalidf("zero Lock: want a Lock of a Client of New or Open, such as locks.Lock(\"order:42\")")

// keyOf checks one name and returns its key. For a GroupLock the name is a value of the group.
func (l Lock) keyOf(name string) (string, error) {
	if l.isZero() {
		return "", errZero
	}
	if !l.kind.HasMembers() {
		return l.redisKey(name)
	}
	key, err := l.redisKey(l.group)
	switch {
	case err != nil:
		return "", err
	case name == "":
		return "", invalidf("GroupLock(%.40q): empty value", l.group)
	case !utf8.ValidString(name):
		return "", invalidf("GroupLock(%.40q): the value %.40q is not UTF-8", l.group, name)
	}
	return redisstore.MemberKey(key, redisstore.GroupValue(l.client.cfg.groupCodec(name))), nil
}

// redisKey checks one name and returns its key in Redis.
func (l Lock) redisKey(name string) (string, error) {
	switch {
	case name == "":
		return "", invalidf("empty lock name")
	case strings.HasSuffix(name, ":"):
		return "", invalidf("lock name %.40q ends in a colon: the value after it is missing, so all callers without a value would share one lock", name)
	}
	cfg := &l.client.cfg
	key := cfg.keyOf(name)
	switch {
	case key == "":
		return "", invalidf("the name mapper makes an empty key of lock %.40q (WithNameMapper)", name)
	case len(key) > cfg.maxKeyLength:
		return "", invalidf("the key of lock %.40q… has %d bytes, the limit is %d (WithMaxKeyLength)", name, len(key), cfg.maxKeyLength)
	}
	if err := l.client.store.CheckKey(l.kind, key); err != nil {
		return "", invalidf("%v", err)
	}
	return key, nil
}

// members returns the Lock of each server of a Redlock.
func (l Lock) members() ([]Lock, error) {
	if len(l.clients) == 0 {
		return nil, invalidf("Redlock without clients: want one for each server")
	}
	members := make([]Lock, len(l.clients))
	for i, c := range l.clients {
		if c == nil || c.store == nil || slices.Contains(l.clients[:i], c) {
			return nil, invalidf("Redlock: client %d is nil, or was given before: want one for each server", i+1)
		}
		members[i] = Lock{client: c, kind: c.kinds.Reentrant, name: l.name, clients: l.clients}
	}
	return members, nil
}

// Acquire takes the lock. It waits as set by [WaitTime], with a lease as set by [LeaseTime]. The
// returned context carries the lock: an Acquire of the same lock with this context, through the
// same client, re-enters. The context ends when ctx ends, or with the cause [ErrLost],
// [ErrHeldTooLong], [ErrReleased] or [ErrClosed]. After Release continue with ctx.
//
// On error Acquire returns ctx unchanged and a nil *Hold. The error matches one of
// [ErrNotAcquired] (and the error of ctx, if ctx was the reason), [ErrUnavailable],
// [ErrTooManyWaiters], [ErrClosed] and [ErrInvalid]. If ctx carries the lock, the error may also match
// [ErrLost] if the lock was lost, or [ErrNotHeld] if it was released in between. A Redis that
// does not answer is never reported as a lock that is taken: the error is ErrUnavailable within
// the backend timeout, or within the wait time if that is shorter. While Redis answers
// that it temporarily cannot serve, for instance with LOADING, BUSY or NOREPLICAS, Acquire waits
// within the wait time.
//
// Without contention, Acquire costs one round trip, and so does Release. Prefer [Lock.Do].
func (l Lock) Acquire(ctx context.Context, opts ...AcquireOption) (context.Context, *Hold, error) {
	hold, err := l.acquire(ctx, opts)
	if err != nil {
		return ctx, nil, err
	}
	hold.watch()
	return &hold.ctx, hold, nil
}

// Do takes the lock, runs fn with the context of the hold, and releases the lock, even if fn panics or calls
// [runtime.Goexit]. If Acquire fails, Do returns its error. Otherwise Do returns the error of fn, joined with [ErrLost]
// or [ErrHeldTooLong] if the lock was lost, or held for too long, while fn ran. If fn returns nil, Do returns the error
// of the release. fn may release the hold early or hand it over. If fn is nil, Do acquires nothing and returns
// [ErrInvalid]. [Call] is Do for a function that returns a value.
func (l Lock) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	if fn == nil {
		return l.nothingToRun("Do")
	}
	_, err := Call(ctx, l, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) }, opts...)
	return err
}

// Call runs fn under the lock l, like [Lock.Do], and returns the value of fn:
//
//	receipt, err := core.Call(ctx, locks.Lock("order:42"), charge, core.WaitTime(3*time.Second))
//
// If the lock is not acquired, Call returns the zero value and the error of [Lock.Acquire]. If fn fails, the lock is
// lost, or the release fails, Call returns the value of fn together with the error. Do not use that value after
// [ErrLost]: another holder may have changed the data since. For a semaphore, l is the field Lock of the [Semaphore].
func Call[T any](ctx context.Context, l Lock, fn func(ctx context.Context) (T, error), opts ...AcquireOption) (value T, err error) {
	if fn == nil {
		return value, l.nothingToRun("Call")
	}
	hold, err := l.acquire(ctx, opts)
	if err != nil {
		return value, err
	}
	defer func() { err = hold.conclude(ctx, err) }()
	return fn(&hold.ctx)
}

// nothingToRun returns the error of a Do or a Call without a function. An error in the name takes precedence.
func (l Lock) nothingToRun(what string) error {
	var err error
	if l.clients == nil {
		_, err = l.keys()
	} else {
		_, err = l.prepareRedlock(nil)
	}
	if err != nil {
		return err
	}
	return invalidf("%s without a function: want one to run while the lock is held, or call Acquire", what)
}

// conclude releases the hold at the end of Call and merges the errors.
func (h *Hold) conclude(ctx context.Context, err error) error {
	released := h.Release(ctx)
	switch {
	case released == nil:
		return err
	case errors.Is(released, ErrLost) && err != nil && !errors.Is(err, ErrLost):
		return errors.Join(err, released)
	case errors.Is(released, ErrNotHeld) && !errors.Is(released, ErrLost):
		return err // fn released the hold or handed it over
	case err != nil:
		return err
	default:
		return released
	}
}

// acquire is like Acquire, but does not watch for a leak of the hold. For a kind without holders it returns a nil hold.
func (l Lock) acquire(ctx context.Context, opts []AcquireOption) (*Hold, error) {
	if l.clients != nil {
		return l.acquireOnMost(ctx, opts)
	}
	if l.isZero() {
		return nil, errZero
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
	hold, err := a.runObserved(ctx, Kind(l.kind.Name), 1, &a.Wish, &a.Report, a.Acquire)
	if err == nil && a.Reusable() {
		c.spare.Put(a)
	}
	return hold, err
}

// acquireOnMost acquires a Redlock. It counts as a caller of every client.
func (l Lock) acquireOnMost(ctx context.Context, opts []AcquireOption) (*Hold, error) {
	members, err := l.prepareRedlock(opts)
	if err != nil {
		return nil, err
	}
	r := &acquire.Redlock{}
	for _, m := range members {
		if err := m.client.callers.enter(); err != nil {
			return nil, err
		}
		defer m.client.callers.exit() //nolint:gocritic // deferred to the end because there are few members
		r.Members = append(r.Members, &m.Acquisition)
	}
	leading := members[0]
	return leading.runObserved(ctx, KindRedlock, acquire.Quorum(len(members)), &leading.Wish, &r.Report, r.Acquire)
}

// prepareRedlock prepares the acquisition of a Redlock on each of its servers.
func (l Lock) prepareRedlock(opts []AcquireOption) ([]*acquisition, error) {
	members, err := l.members()
	if err != nil {
		return nil, err
	}
	list := make([]*acquisition, len(members))
	for i, m := range members {
		list[i] = &acquisition{client: m.client}
		list[i].Acquirer = m.client.acquirer
		if err := list[i].read(m, opts); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// acquisition is one call of Acquire, Do or Call. A client reuses it if no other goroutine can refer to it.
type acquisition struct {
	acquire.Acquisition

	client  *Client
	label   string
	maxHold time.Duration // 0: no limit
	key     [1]string     // room for the usual single key
}

// newAcquisition returns an empty acquisition.
func (c *Client) newAcquisition() *acquisition {
	a, ok := c.spare.Get().(*acquisition)
	if !ok {
		a = &acquisition{}
	} else {
		*a = acquisition{}
	}
	a.client, a.Acquirer = c, c.acquirer
	return a
}

// read checks the lock and the options and stores them in a.
func (a *acquisition) read(l Lock, opts []AcquireOption) (err error) {
	keys := a.key[:]
	if l.names == nil {
		keys[0], err = l.keyOf(l.name)
	} else {
		keys, err = l.keys()
	}
	if err != nil {
		return err
	}
	if a.label, a.maxHold, err = l.client.cfg.readOptions(&a.Wish, l.kind, opts); err != nil {
		return err
	}
	a.Wish.Keys, a.Wish.Once = keys, l.once
	if a.Wish.Token {
		if err := l.checkToken(); err != nil {
			return err
		}
	}
	switch {
	case l.kind.Holds == redisstore.Unheld:
		a.Wish.Operation = l.demand
	case l.demand != "":
		a.Wish.Demand = l.demand
		if _, err := strconv.ParseUint(l.demand, 10, 31); err != nil {
			return invalidf("Semaphore(%.40q, %s): want 0 to %d permits", l.name, l.demand, math.MaxInt32)
		}
	}
	return nil
}

// checkToken refuses a fencing token for a lock whose holders no single counter orders.
func (l Lock) checkToken() error {
	switch {
	case l.clients != nil:
		return invalidf("WithToken for a Redlock: each of its servers counts for itself: want a FencedLock on one server with replicas")
	case l.kind.HasMembers():
		return invalidf("WithToken for a GroupLock: no counter orders the holders of a group: want a FencedLock, or to leave the option out")
	case l.names != nil:
		return invalidf("WithToken for a MultiLock: each of its locks counts for itself: want one name, or to acquire the lock that the token is for separately")
	case l.kind.Shared() && l.kind.Holds == redisstore.Reentrant:
		return invalidf("WithToken for a %s: several hold it at a time, and one token cannot order them: want a WriteLock, or to leave the option out", l.kind.Noun())
	case l.kind.Shared():
		return invalidf("WithToken for a %s: several hold it at a time, and one token cannot order them: want a FencedLock, or to leave the option out", l.kind.Noun())
	}
	return nil
}

// runObserved runs take, reports its start and its end to the observers, and returns a hold of the holders that take
// returned. The hold needs the leases of at least needs holders. A MultiLock needs the leases of all its holders.
func (a *acquisition) runObserved(
	ctx context.Context, kind Kind, needs int, w *acquire.Wish, r *acquire.Report, take func(context.Context) ([]*holding.Holder, error),
) (*Hold, error) {
	c, observers := a.client, &a.client.cfg.observers
	r.Start = time.Now()
	acq := a.describe(kind, w.Keys, r.Start)
	inside := observers.observeAcquireStart(ctx, acq)
	if observers.contention.Observed() {
		w.Contended = func(blockedBy string, ttl time.Duration) {
			observers.contention.Notify(inside, Contention{Acquisition: acq, BlockedBy: blockedBy, TTL: ttl})
		}
	}
	holders, err := take(inside)
	err = publicError(err)
	var hold *Hold
	if err == nil && len(holders) > 0 {
		hold = newHold(c.holdings.NewHold(holders, max(needs, len(w.Keys)), holding.Info{
			Label: a.label, Start: r.Start, Took: r.Acquired.Sub(r.Start), Lease: w.Lease, AllKeys: acq.all, Keys: int32(acq.Keys),
			Renewed: w.Renewed, Reentrant: r.Reentered, Redlock: kind == KindRedlock,
		}))
		if a.maxHold > 0 {
			hold.handle.Hold.Limit(a.maxHold)
		}
	}
	given := false
	defer func() {
		if hold != nil && !given {
			hold.abandon(ctx, hold.handle.Hold.Begin)
		}
	}()
	switch {
	case observers.acquireEnd.Observed():
		observers.acquireEnd.Notify(inside, resultOf(inside, acq, r, err))
	case err != nil:
		c.unobserved.refusal(inside, acq, err)
	}
	if hold != nil {
		hold.bind(ctx)
		hold.handle.Hold.Begin()
	}
	given = true
	return hold, err
}

// describe returns the description of the acquisition for the observers.
func (a *acquisition) describe(kind Kind, keys []string, start time.Time) Acquisition {
	acq := Acquisition{Key: keys[0], Keys: len(keys), Kind: kind, Label: a.label, Start: start, ClientID: a.client.ID()}
	if len(keys) > 1 {
		all := keys // a copy, because the parameter would be allocated each time
		acq.all = &all
	}
	return acq
}

// resultOf returns the result of an acquisition in ctx for the observers.
func resultOf(ctx context.Context, acq Acquisition, r *acquire.Report, err error) AcquireResult {
	result := AcquireResult{
		Acquisition: acq, Outcome: outcomeOf(ctx, err), Err: err, Waited: time.Since(acq.Start), Contended: r.Contended, Attempts: r.Attempts,
		RoundTrip: r.RoundTrip, HandedOff: r.HandedOff, BlockedBy: r.BlockedBy,
	}
	if err == nil {
		result.Field, result.Token = r.Field, r.Token
		if r.Reentered {
			result.Outcome = OutcomeReentered
		}
	}
	return result
}

// outcomeOf maps the error of an acquisition in ctx to its outcome. The cause of an outage may match the errors of a
// context although ctx has not ended: an example is the timeout of a dialer.
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
