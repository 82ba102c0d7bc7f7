package core

import (
	"context"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/core/internal/acquire"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Semaphore is a semaphore whose permits have leases: it has at most as many holders as permits. It is a [Lock]:
// each acquisition takes one permit, and has a separate [Hold], which is renewed, lost and released like the
// hold of any lock. A semaphore has no re-entry: a caller that acquires twice has two permits. A Semaphore comes from a
// [Client]: with the zero value, every call is [ErrInvalid].
type Semaphore struct{ Lock }

// Semaphore returns a semaphore whose permits have leases. It shares its layout in Redis with Redisson's
// RPermitExpirableSemaphore. The permit of a process that has died comes back when its lease expires.
//
// permits is the number of permits in all. An acquisition that finds another number changes it to permits. If processes
// are configured differently, for instance during a rollout, the number of the last acquisition counts. Then holders
// may have more permits than that number; the excess ends as holders release. With 0 the number stays as it was set by
// [Semaphore.TrySetPermits] or from Java. Until it is set, no acquisition succeeds; the [*NotAcquiredError] contains
// the reason.
//
// A number that an acquisition has set expires a day after the last acquisition and the end of its lease, or up to an hour later, so
// a name may contain a value, such as a customer. Permits that are renewed for longer stay held, and the next acquisition counts
// them. Without the number Redisson has no permits, so in Java set the number without a TTL before the first acquisition from Go: such a
// number stays.
//
// Callers of one client get permits in the order in which they came. While permits are free, up to eight callers ask
// Redis at the same time. Later callers may overtake a caller that is refused, until that caller is the first in the
// queue. The field of a hold is its permit id: 32 hex digits, in the form of Redisson. Leases expire by the clock of
// the server. [Lock.State] shows the lease that ends first. [Lock.ForceRelease] gives all permits back; their number
// stays.
func (c *Client) Semaphore(name string, permits int) Semaphore {
	return Semaphore{Lock{client: c, kind: c.kinds.PermitSemaphore, name: name, demand: strconv.Itoa(permits)}}
}

// Held reports whether ctx carries a permit that was acquired through the same client. A caller that needs one permit
// for all of its work calls Held before it acquires, because it may wait forever for a second permit while it holds the
// first one. Like the function [Held], the method ignores permits that were released, lost or handed over.
func (s Semaphore) Held(ctx context.Context) bool {
	key, err := s.keyOf(s.name)
	if err != nil {
		return false
	}
	o := s.client.carriers.find(ctx, key, s.kind)
	return o != nil && o.Kind() == s.kind
}

// TrySetPermits sets the number of permits of a semaphore that has none yet, and reports whether it did. It is for a
// semaphore created with 0; for a semaphore with a fixed number it returns [ErrInvalid].
//
// Like every operation that changes a number, it is sent even if ctx is done, and is executed once, however often it is
// sent. After [ErrUnavailable] the operation continues in the background until it is executed, for ten minutes, or
// until the client is closed. It does not continue if Redis refuses it for a reason that does not pass by itself. The
// error message says whether the operation continues or was not executed.
func (s Semaphore) TrySetPermits(ctx context.Context, permits int) (bool, error) {
	if err := s.checkManual("TrySetPermits", permits); err != nil {
		return false, err
	}
	return count{s.Lock}.trySet(ctx, permits)
}

// checkManual refuses to change a number that the next acquisition would change back.
func (s Semaphore) checkManual(method string, n int) error {
	if s.demand == "0" {
		return nil
	}
	return invalidf("%s(%d): each acquisition of Semaphore(%.40q, %s) sets it to %s again: to set the number by hand, want Semaphore(%.40q, 0) wherever it is used",
		method, n, s.name, s.demand, s.demand, s.name)
}

// SetPermits sets the number of permits in all, including permits that are held. It is for a semaphore created with 0;
// for a semaphore with a fixed number it returns [ErrInvalid].
func (s Semaphore) SetPermits(ctx context.Context, permits int) error {
	if err := s.checkManual("SetPermits", permits); err != nil {
		return err
	}
	if err := checkCount("SetPermits", permits, 0); err != nil {
		return err
	}
	_, err := count{s.Lock}.operate(ctx, "total", permits)
	return err
}

// AddPermits changes the number of permits by n, which may be negative. The number of free permits
// may then be negative until some come back. [ErrInvalid] means that there would be more than 2147483647 permits,
// which Redisson cannot read, or that the semaphore was not created with 0; nothing was changed.
func (s Semaphore) AddPermits(ctx context.Context, n int) error {
	if err := s.checkManual("AddPermits", n); err != nil {
		return err
	}
	if err := checkCount("AddPermits", n, -math.MaxInt32); err != nil {
		return err
	}
	return count{s.Lock}.change(ctx, "add", "AddPermits", n)
}

// ReleasePermit gives a permit back by its id, whichever client holds it. It is Redisson's release(permitId). It is for
// permits that come from elsewhere, such as a Java service, and for operators. A caller that has a [Hold] releases the
// hold instead. A holder in Go learns of the loss at its next renewal or, if its lease is fixed, when it releases or
// refreshes. A holder in Java learns of it when it releases.
//
// [ErrNotHeld] means that no client holds the permit. If the lease of the permit had expired, ReleasePermit gives the
// permit back and also returns ErrNotHeld. [ErrInvalid] means that id is not 32 hex digits. The operation is executed
// once, costs a round trip, and continues in the background like [Semaphore.TrySetPermits].
func (s Semaphore) ReleasePermit(ctx context.Context, id string) error {
	permit, err := permitID(id)
	if err != nil {
		return err
	}
	key, err := s.admit()
	if err != nil {
		return err
	}
	defer s.client.callers.exit()
	released, err := count{s.Lock}.execute(ctx, key, permit+":back", 1)
	s.client.holdings.Doubt(slices.DeleteFunc(s.client.queues.Holders(key), func(h queue.Holder) bool { return h.Field() != permit }))
	if err == nil && !released {
		return ErrNotHeld
	}
	return err
}

// permitID returns an id in the form of the fields of holds.
func permitID(id string) (string, error) {
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != 16 {
		return "", invalidf("ReleasePermit(%.40q): want a permit id, 32 hex digits", id)
	}
	return strings.ToLower(id), nil
}

// Available returns how many permits are free: 0 before the first acquisition, and after the number has expired. It asks the master.
func (s Semaphore) Available(ctx context.Context) (int, error) {
	counts, err := count{s.Lock}.counts(ctx)
	return counts.Left, err
}

// Acquired returns how many permits are held. It asks the master.
func (s Semaphore) Acquired(ctx context.Context) (int, error) {
	counts, err := count{s.Lock}.counts(ctx)
	return counts.Acquired, err
}

// PlainSemaphore is a number of permits without holders: any caller may give permits back, whether it took some
// or not. It comes from a [Client]: with the zero value, every call is [ErrInvalid].
type PlainSemaphore struct{ count }

// PlainSemaphore returns a semaphore without holders and leases. It shares its layout in Redis with Redisson's
// RSemaphore. The permits of a process that has died do not come back: prefer [Client.Semaphore]. It
// has no permits before [PlainSemaphore.TrySetPermits].
//
// Each operation that changes the number is executed once, however often it is sent. For that, the last
// operations of each client are kept for 15 minutes in a key beside the number, "{name}:interlock_ops".
func (c *Client) PlainSemaphore(name string) PlainSemaphore {
	return PlainSemaphore{count{Lock{client: c, kind: c.kinds.PlainSemaphore, name: name}}}
}

// Acquire takes n permits at once. It waits as set by [WaitTime]. Callers of one client get permits in the order in
// which they came, whatever n is: once the first caller is refused, no later caller asks. It returns the same errors as
// [Lock.Acquire]. After an error no permit is taken, or the permits are given back as soon as Redis answers.
func (s PlainSemaphore) Acquire(ctx context.Context, n int, opts ...AcquireOption) error {
	if err := checkCount("Acquire", n, 1); err != nil {
		return err
	}
	return s.take(ctx, "take", n, opts...)
}

func (s PlainSemaphore) take(ctx context.Context, what string, n int, opts ...AcquireOption) error {
	l := s.lock
	l.demand = ":" + what + ":" + strconv.Itoa(n)
	_, err := l.acquire(ctx, opts)
	return err
}

// Release gives n permits back. It is sent even if ctx is done, and continues after [ErrUnavailable], like
// [Semaphore.TrySetPermits]: do not repeat it unless the error says that it was not executed. [ErrInvalid] means that
// there would be more than 2147483647 permits, which Redisson cannot read; nothing was changed.
func (s PlainSemaphore) Release(ctx context.Context, n int) error {
	if err := checkCount("Release", n, 1); err != nil {
		return err
	}
	return s.change(ctx, "give", "Release", n)
}

// TrySetPermits is like [Semaphore.TrySetPermits].
func (s PlainSemaphore) TrySetPermits(ctx context.Context, permits int) (bool, error) {
	return s.trySet(ctx, permits)
}

// AddPermits changes the number of free permits by n, which may be negative. Otherwise it is like
// [PlainSemaphore.Release].
func (s PlainSemaphore) AddPermits(ctx context.Context, n int) error {
	if err := checkCount("AddPermits", n, -math.MaxInt32); err != nil {
		return err
	}
	return s.change(ctx, "give", "AddPermits", n)
}

// Drain takes all free permits and returns their number. Each time that others change the number in between costs two
// more round trips.
func (s PlainSemaphore) Drain(ctx context.Context) (int, error) {
	for {
		n, err := s.Available(ctx)
		if err != nil || n <= 0 {
			return 0, err
		}
		if err = s.take(ctx, "drain", n, WaitTime(0)); err == nil {
			return n, nil
		}
		if ctx.Err() != nil || !errors.Is(err, ErrNotAcquired) {
			return 0, err
		}
	}
}

// Available returns how many permits are free. It asks the master.
func (s PlainSemaphore) Available(ctx context.Context) (int, error) {
	counts, err := s.counts(ctx)
	return counts.Left, err
}

// count is the count of a semaphore or a latch.
type count struct{ lock Lock }

// operate executes an operation on the count, as Execute of package counting does.
func (c count) operate(ctx context.Context, what string, n int) (changed bool, err error) {
	key, err := c.lock.admit()
	if err != nil {
		return false, err
	}
	defer c.lock.client.callers.exit()
	return c.execute(ctx, key, what, n)
}

// execute is like operate, but for a caller that has entered the client.
func (c count) execute(ctx context.Context, key, what string, n int) (changed bool, err error) {
	if err := c.checkKind(key); err != nil {
		return false, err
	}
	changed, err = c.lock.client.counter.Execute(ctx, c.lock.kind, key, what, n)
	return changed, publicError(err)
}

func (c count) change(ctx context.Context, what, method string, n int) error {
	changed, err := c.operate(ctx, what, n)
	if err == nil && !changed {
		return invalidf("%s(%d): there would be more than %d permits, or less than %d, which Redisson cannot read; nothing was changed",
			method, n, math.MaxInt32, math.MinInt32)
	}
	return err
}

func (c count) trySet(ctx context.Context, n int) (bool, error) {
	if err := checkCount("TrySetPermits", n, 0); err != nil {
		return false, err
	}
	return c.operate(ctx, "set", n)
}

// checkKind refuses a name that this client uses as another kind.
func (c count) checkKind(key string) error {
	if err := c.lock.client.queues.CheckKind(key, c.lock.kind.Family); err != nil {
		return acquire.NotQueued(err, key, c.lock.kind)
	}
	return nil
}

func (c count) counts(ctx context.Context) (redisstore.Counts, error) {
	counts, _, err := ask(ctx, c.lock, "the count", (*redisstore.Store).Count)
	return counts, err
}

// checkCount refuses a number that Redisson cannot have.
func checkCount(what string, n, least int) error {
	if n < least || n > math.MaxInt32 {
		return invalidf("%s(%d): want %d to %d", what, n, least, math.MaxInt32)
	}
	return nil
}

// CountDownLatch is a count that opens for all waiters when it reaches zero. It comes from a [Client]: with the
// zero value, every call is [ErrInvalid].
type CountDownLatch struct{ count }

// CountDownLatch returns a latch. It shares its layout in Redis with Redisson's RCountDownLatch. A latch without a
// count is open. A second key lists the last operations, as for a [Client.PlainSemaphore]. In a Cluster a name with
// braces is [ErrInvalid], because Redisson's channel would be in another slot.
func (c *Client) CountDownLatch(name string) CountDownLatch {
	return CountDownLatch{count{Lock{client: c, kind: c.kinds.Latch, name: name}}}
}

// TrySetCount closes a latch that is open, and reports whether it did. n is the count from which CountDown counts down.
// The operation continues in the background like [Semaphore.TrySetPermits].
func (l CountDownLatch) TrySetCount(ctx context.Context, n int) (bool, error) {
	if err := checkCount("TrySetCount", n, 1); err != nil {
		return false, err
	}
	return l.operate(ctx, "begin", n)
}

// CountDown counts down by one. At zero the latch opens. If the latch is open, CountDown changes nothing. It is sent
// even if ctx is done, and continues after [ErrUnavailable], like [Semaphore.TrySetPermits]: do not repeat it unless
// the error says that it was not executed.
func (l CountDownLatch) CountDown(ctx context.Context) error {
	_, err := l.operate(ctx, "down", 1)
	return err
}

// Count returns how often the latch has to be counted down until it opens. It asks the master.
func (l CountDownLatch) Count(ctx context.Context) (int, error) {
	counts, err := l.counts(ctx)
	return counts.Left, err
}

// Await waits until the latch is open, as set by [WaitTime]. All waiters continue together, after each has asked
// Redis. It returns the same errors as [Lock.Acquire]: a latch that stays closed is [ErrNotAcquired].
func (l CountDownLatch) Await(ctx context.Context, opts ...AcquireOption) error {
	_, err := l.lock.acquire(ctx, opts)
	return err
}

// Delete opens the latch, whatever its count, and reports whether it was closed. It deletes no lock, but it
// cannot distinguish a count from another number, such as the number of a semaphore that other clients use.
func (l CountDownLatch) Delete(ctx context.Context) (bool, error) {
	key, err := l.lock.keyOf(l.lock.name)
	if err != nil {
		return false, err
	}
	if err := l.checkKind(key); err != nil {
		return false, err
	}
	deleted, _, err := ask(ctx, l.lock, "Delete", (*redisstore.Store).Force)
	return deleted, err
}
