package acquire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/holding"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
	"github.com/interlock-go/interlock/core/internal/wakeup"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Redis has the scripts that grant locks, and the one that takes a grant back.
type Redis interface {
	Acquire(now time.Time, c redisstore.Claim, t redisstore.Terms) redisstore.Call[redisstore.Grant]
	AcquireAll(now time.Time, k *redisstore.Kind, keys []string, field string, lease time.Duration) redisstore.Call[redisstore.Grant]
	Clear(now time.Time, list []redisstore.Suspicion) redisstore.Call[[]redisstore.Finding]
	// Reached reports whether the Redis is not a Cluster, or the Cluster has answered once.
	Reached() bool
	// Detect makes a Cluster answer once.
	Detect(ctx context.Context, limit time.Time) error
}

// Graves clear up the fields of commands without an answer.
type Graves interface {
	holding.Graves
	// Orphaned and WasOrphaned report whether a field is being cleared up, or was just now.
	Orphaned(field string) bool
	WasOrphaned(field string) bool
}

// Operations are the operations on counts, such as semaphores, that Redis remembers.
type Operations interface {
	// Take returns operations whose answers have come, which the next command has Redis forget.
	Take(key string) []string
	// Note adds one.
	Note(key, operation string)
}

// Config is what the acquisitions of a client need. All of it is required.
type Config struct {
	Redis      Redis
	Sender     *resend.Sender
	Queues     *queue.Queues
	Wakeups    *wakeup.Subscriber
	Graves     Graves
	Holdings   *holding.Holdings
	Operations Operations

	Service   context.Context                             //nolint:containedctx // ends when the client begins to close
	NextField func(kind *redisstore.Kind) string          // makes a field that was never used
	FailFast  func(ctx context.Context, key string) error // is not nil while the node of the key is known to be silent
	OneScript func(keys []string) bool                    // reports whether one script may use all keys

	// Carried returns what ctx carries of a key: a holder to enter again, or one under which the lock can be acquired.
	Carried func(ctx context.Context, key string, w *Wish) (again, under *holding.Holder, err error)
	// Lost returns why one of the keys that ctx carries was lost; nil if none was.
	Lost func(ctx context.Context, keys []string) error
	// Tried is called when the acquisition of a key that began at start has ended.
	Tried func(ctx context.Context, key string, start time.Time, err error)
}

// Acquirer takes the locks of one client. It is safe for concurrent use.
type Acquirer struct{ Config }

// New returns an Acquirer.
func New(cfg Config) *Acquirer { return &Acquirer{cfg} }

// Wish is what a caller wants.
type Wish struct {
	Kind       *redisstore.Kind
	Keys       []string // in the order in which every client takes them
	Wait       time.Duration
	Forever    bool // the wait lasts until the context ends
	Lease      time.Duration
	Renewed    bool // the watchdog renews the lease
	Token      bool // a fencing token is wanted
	MaxWaiters int
	Demand     string                          // of a semaphore: see [redisstore.Terms]
	Operation  string                          // follows the fields of an operation on a count
	BeforeWait func(ctx context.Context) error // is called once before the wait; nil: not

	// Contended is called when the lock is taken, the first time; nil: not. ttl is what is left of the lease.
	Contended func(blockedBy string, ttl time.Duration)

	under     *holding.Holder // of the caller, with which the lock can be shared; nil: none
	member    bool            // it is for one server of a Redlock
	asksAgain bool            // and the Redlock may wait, and asks again
	admitted  bool            // the limits of waiters have let it in before
}

// MayWait reports whether the caller joins a queue.
func (w *Wish) MayWait() bool { return w.Forever || w.Wait > 0 }

// Report is how an acquisition went.
type Report struct {
	Start     time.Time // set by the caller: the wait time counts from here
	Acquired  time.Time
	Contended bool          // the first attempt was refused, or others were queued before it
	Reentered bool          // the context already carried all keys
	HandedOff bool          // received from a hold of this client
	Attempts  int           // commands sent
	RoundTrip time.Duration // of the command that succeeded
	BlockedBy string        // the field that had the lock at the last refusal, or that it came from
	Field     string        // of the grant
	Token     int64
}

// BusyError says that the lock was not acquired. Package core turns it into its own error.
type BusyError struct {
	Key        string
	Waited     time.Duration
	RetryAfter time.Duration // until the lease ends that the last refusal showed; 0: unknown
	BlockedBy  string        // field of the holder at the last refusal; empty: unknown
	OwnHold    bool          // another hold of this client has the lock
	Cause      error         // why the wait ended; nil: the wait time was over
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%v after %s", failure.NotAcquired, e.Waited.Round(time.Microsecond))
}

// Unwrap returns [failure.NotAcquired] and the cause.
func (e *BusyError) Unwrap() []error {
	if e.Cause == nil {
		return []error{failure.NotAcquired}
	}
	return []error{failure.NotAcquired, e.Cause}
}

// Acquisition takes the keys of one client. It has room for the usual single attempt, so that it can be used again.
type Acquisition struct {
	Acquirer *Acquirer
	Wish     Wish
	Report   Report

	first attempt
}

// Reusable reports whether no other goroutine can know the acquisition: it took one key without waiting.
func (a *Acquisition) Reusable() bool {
	return len(a.Wish.Keys) == 1 && !a.Report.Contended && a.first.room.Reusable()
}

// Acquire takes all keys or none. For a kind that is not held, such as a latch, it returns no holders.
func (a *Acquisition) Acquire(ctx context.Context) ([]*holding.Holder, error) {
	holders, err := a.take(ctx)
	if err != nil {
		err = cmp.Or(a.Acquirer.Lost(ctx, a.Wish.Keys), err) // the loss has happened, whatever noticed it first
	}
	a.Acquirer.Tried(ctx, a.Wish.Keys[0], a.Report.Start, err)
	return holders, err
}

func (a *Acquisition) take(ctx context.Context) ([]*holding.Holder, error) {
	in, keys := a.Acquirer, a.Wish.Keys
	if ctx.Err() != nil {
		return nil, &BusyError{Key: keys[0], Cause: failure.Ended(ctx)}
	}
	now, err := a.reach(ctx)
	if err != nil {
		return nil, err
	}
	if len(keys) > 1 {
		return in.takeSeveral(ctx, &a.Wish, &a.Report)
	}
	again, under, err := in.Carried(ctx, keys[0], &a.Wish)
	switch {
	case err != nil:
		return nil, err
	case again != nil:
		return a.reenter(ctx, again)
	}
	a.Wish.under = under
	a.first = in.attempt(keys[0], &a.Wish, &a.Report, now)
	got, err := a.first.run(ctx)
	if err != nil {
		return nil, err
	}
	a.Report.Acquired, a.Report.Field, a.Report.Token = a.first.now, got.Field(), got.Token()
	if a.Wish.Kind.Holds == redisstore.Unheld {
		return nil, nil
	}
	got.Watch(a.Wish.Renewed, a.first.now)
	return got.Alone(), nil
}

// reenter adds a hold to the holder of the only key.
func (a *Acquisition) reenter(ctx context.Context, o *holding.Holder) ([]*holding.Holder, error) {
	if err := a.Acquirer.reenter(ctx, o, &a.Wish, &a.Report); err != nil {
		return nil, err
	}
	a.Report.Reentered, a.Report.Acquired, a.Report.Field, a.Report.Token = true, time.Now(), o.Field(), o.Token()
	return o.Alone(), nil
}

// reach makes a Cluster answer once, which may take a while, and returns the time after that.
func (a *Acquisition) reach(ctx context.Context) (now time.Time, err error) {
	in, start := a.Acquirer, a.Report.Start
	if in.Redis.Reached() {
		return start, nil
	}
	limit := in.Sender.DetectLimit(start)
	if !a.Wish.Forever && a.Wish.Wait > 0 {
		limit = resend.Earliest(limit, start.Add(a.Wish.Wait))
	}
	err = in.Redis.Detect(ctx, limit)
	if err != nil && ctx.Err() != nil {
		return start, &BusyError{Key: a.Wish.Keys[0], Waited: time.Since(start), Cause: failure.Ended(ctx)}
	}
	return time.Now(), failure.BecauseOf(err)
}

// reenter adds a hold that has not begun to a holder that ctx carries.
func (in *Acquirer) reenter(ctx context.Context, o *holding.Holder, w *Wish, report *Report) error {
	a := in.attempt(o.Key(), w, report, time.Now())
	ended, err := o.Reenter(ctx, holding.Entry{
		Span: a.span(), Lease: w.Lease, Renewed: w.Renewed,
		Valid: func() bool {
			again, _, _ := in.Carried(ctx, o.Key(), w) //nolint:errcheck // then it carries another one
			return again == o
		},
	})
	if err == nil || ended {
		return err
	}
	return a.notEntered(ctx, err)
}

// NotQueued returns the error of a caller that the queue of a key did not let in.
func NotQueued(err error, key string, kind *redisstore.Kind) error {
	if other, ok := errors.AsType[*queue.KindError](err); ok {
		return failure.Invalidf("this client uses %q as a %s; one name is for one kind: use that kind here too, or another name for the %s", key, other.Kind, kind.Noun())
	}
	return failure.TooManyWaiters
}

// lateAnswer is an acquire without an answer, as the reaper sees it.
type lateAnswer struct {
	call        *redisstore.Call[redisstore.Grant]
	leavesField bool // a refusal leaves the field in a queue in Redis
}

// Late looks whether the answer has come.
func (l lateAnswer) Late() reaper.Outcome {
	grant, fate, err := l.call.Late()
	switch {
	case wire.Pending(err):
		return reaper.Pending
	case wire.Short(err):
		return reaper.Granted // too few replicas know
	case err != nil && fate != wire.Unknown:
		return reaper.Unchanged
	case err != nil:
		return reaper.Unknown
	case grant.Refusal != nil && !l.leavesField:
		return reaper.Unchanged
	default:
		return reaper.Granted
	}
}
