package core

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/acquire"
	"github.com/interlock-go/interlock/core/internal/counting"
	"github.com/interlock-go/interlock/core/internal/missingunit"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// AcquireOption configures one acquisition. Make it with [WaitTime], [LeaseTime], [MaxHold], [Label],
// [MaxWaiters], [BeforeWait] or [WithToken]. The zero value changes nothing. It is a value, so options do not allocate.
type AcquireOption struct {
	field acquireField
	d     time.Duration
	n     int
	s     string
	f     func(ctx context.Context) error
}

type acquireField uint8

const (
	fieldNone acquireField = iota
	fieldWait
	fieldLease
	fieldMaxHold
	fieldLabel
	fieldMaxWaiters
	fieldBeforeWait
	fieldToken
)

// WaitTime sets how long Acquire may take, network included. Acquire never waits beyond the deadline of its context.
// With 0, Acquire makes one attempt in one round trip. It attempts again, for up to a second, while the lock is held
// only by an earlier acquire of the same client that got no answer and is being cleared up. Without this option Acquire
// waits until the context is done. A wait time between 0 and 1 ms, a negative one, or one over [MaxDuration] is
// [ErrInvalid].
func WaitTime(d time.Duration) AcquireOption { return AcquireOption{field: fieldWait, d: d} }

// LeaseTime gives the lock a fixed lease, which expires after d unless it is refreshed. The hold's context ends with
// the lease. Without this option the watchdog renews the lease while the process lives and the lock is held. In
// Redis the lease may last up to 100 ms longer, so that callers of the client can pass the lock on. The hold
// still ends before d has passed. A lease under 1 ms or over [MaxDuration] is [ErrInvalid].
func LeaseTime(d time.Duration) AcquireOption { return AcquireOption{field: fieldLease, d: d} }

// MaxHold limits the hold to d, counted from its acquisition. If the watchdog still renews the lease at that time,
// the context of the hold ends with the cause [ErrHeldTooLong], and the watchdog does not renew the lease for this
// hold any more. The lock is not given up: a Release frees it at once. Without a Release it is free when its lease
// ends, which takes at most the time of [WithWatchdog], or until the end of a longer [LeaseTime] of a re-entry. So a
// caller that obeys its context finishes under the lock, and a caller that hangs does not keep the lock.
//
// A caller that ignores its context may work at the same time as the next holder. If [Hold.Refresh] has fixed the lease
// before, the limit has no effect. [Hold.Handover] does not change the limit. A re-entry also has the limit of the hold
// that it re-enters, or, if that hold has a fixed lease, of an earlier re-entry that the watchdog renews. Its own limit
// does not end the hold that it re-enters. A limit under 1 ms, over [MaxDuration], or together with
// [LeaseTime] is [ErrInvalid].
func MaxHold(d time.Duration) AcquireOption { return AcquireOption{field: fieldMaxHold, d: d} }

// Label gives observers a low-cardinality name for the acquisition, such as the rule or the operation:
// "pay-order", never an id.
func Label(name string) AcquireOption { return AcquireOption{field: fieldLabel, s: name} }

// MaxWaiters makes Acquire fail with [ErrTooManyWaiters] if n callers of this client already wait for the key. With 0
// only the limits of the client apply.
func MaxWaiters(n int) AcquireOption { return AcquireOption{field: fieldMaxWaiters, n: n} }

// BeforeWait sets a function that Acquire calls before it waits: after its first attempt was refused, or if callers of
// this client are before it. Use it for expensive work that is not needed if the lock is free, such as reading a
// request. While prepare runs, the caller is not in the queue and delays no other caller. After that the caller takes
// the place in the queue that its age gives it and attempts again. The context of prepare is canceled at the end of the
// wait time, with the caller's context, and when the client is closed: prepare has to return then. If prepare returns
// an error that is not the error of its context, the acquisition fails with it. prepare is called at most once, and
// never with [WaitTime] 0.
func BeforeWait(prepare func(ctx context.Context) error) AcquireOption {
	return AcquireOption{field: fieldBeforeWait, f: prepare}
}

// WithToken asks for a fencing token: see [Hold.Token]. Every lock with one name, one client and one holder at a
// time can have one; [Client.FencedLock] always does. It costs no round trip, but a second key in the script
// that takes the lock: the counter that FencedLock also uses. If another program set that counter to 2^53 or
// more, nothing is acquired and the error is [ErrUnavailable]. No counter orders the holders of a
// [Client.MultiLock] with several names, of a [Client.GroupLock], of a [Redlock], or of a lock that several hold at a time
// ([Client.ReadLock], [Client.Semaphore]): for these the option is [ErrInvalid].
//
// Callers of one client do not pass on a lock with a token in memory: a script hands it off and draws the next token.
//
// A re-entry has the token of the hold that it re-enters, also without this option. If that hold has none, the
// option is [ErrInvalid], without a command: ask for the token in the outer acquisition.
func WithToken() AcquireOption { return AcquireOption{field: fieldToken} }

// readOptions fills w with the options of an acquisition of a lock of a kind. It returns the label and the limit of the
// hold; 0 if it has none.
func (c *config) readOptions(w *acquire.Wish, kind *redisstore.Kind, opts []AcquireOption) (label string, maxHold time.Duration, err error) {
	*w = acquire.Wish{Kind: kind, Forever: true, Renewed: true, Lease: c.watchdog}
	if kind.Holds == redisstore.Unheld {
		w.Renewed, w.Lease = false, counting.OperationTime
	}
	for _, o := range opts {
		switch o.field {
		case fieldNone:
		case fieldWait:
			w.Wait, w.Forever = o.d, false
			if o.d != 0 && (o.d < time.Millisecond || o.d > MaxDuration) {
				return "", 0, invalidf("WaitTime(%s): want 0, or 1ms to %s%s", o.d, MaxDuration, missingunit.Hint(o.d))
			}
		case fieldLease:
			w.Lease, w.Renewed = o.d.Truncate(time.Millisecond), false
			if err := checkLeaseOf(kind, o.d); err != nil {
				return "", 0, err
			}
		case fieldMaxHold:
			maxHold = o.d
			if err := checkMaxHold(kind, o.d); err != nil {
				return "", 0, err
			}
		case fieldLabel:
			label = o.s
		case fieldMaxWaiters:
			w.MaxWaiters = o.n
			if o.n < 0 {
				return "", 0, invalidf("MaxWaiters(%d): want 0 or more", o.n)
			}
		case fieldBeforeWait:
			w.BeforeWait = o.f
		case fieldToken:
			w.Token = true
		}
	}
	if maxHold > 0 && !w.Renewed {
		return "", 0, invalidf("MaxHold(%s) with LeaseTime(%s): a fixed lease ends by itself: want one of them", maxHold, w.Lease)
	}
	return label, maxHold, nil
}

func checkMaxHold(kind *redisstore.Kind, d time.Duration) error {
	if kind.Holds == redisstore.Unheld {
		return invalidf("MaxHold for a %s: nothing is held; want a Semaphore, whose permits are held", kind.Noun())
	}
	if d < time.Millisecond || d > MaxDuration {
		return invalidf("MaxHold(%s): want 1ms to %s%s", d, MaxDuration, missingunit.Hint(d))
	}
	return nil
}

func checkLeaseOf(kind *redisstore.Kind, d time.Duration) error {
	if kind.Holds == redisstore.Unheld {
		return invalidf("LeaseTime for a %s: nothing is held; want a Semaphore, whose permits have leases", kind.Noun())
	}
	return checkLease("LeaseTime", d)
}

func checkLease(what string, d time.Duration) error {
	if d < time.Millisecond || d > MaxDuration {
		return invalidf("%s(%s): want 1ms to %s, or no lease for the watchdog%s", what, d, MaxDuration, missingunit.Hint(d))
	}
	return nil
}
