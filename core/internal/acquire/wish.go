package acquire

import (
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

// Redis runs the scripts that grant locks and the script that takes a grant back.
type Redis interface {
	Acquire(now time.Time, c redisstore.Claim, t redisstore.Terms) redisstore.Call[redisstore.Grant]
	AcquireAll(now time.Time, k *redisstore.Kind, keys []string, field string, lease time.Duration) redisstore.Call[redisstore.Grant]
	Clear(now time.Time, list []redisstore.Suspicion) redisstore.Call[[]redisstore.Finding]
	// Reached reports whether the Redis is not a Cluster, or the Cluster has answered once.
	Reached() bool
	// Detect makes a Cluster answer once.
	Detect(ctx context.Context, limit time.Time) error
}

// Reaper clears up the fields of commands without an answer.
type Reaper interface {
	holding.Reaper
	// IsOrphan reports whether the reaper is clearing a field up. WasOrphan reports whether it has recently done so.
	IsOrphan(field string) bool
	WasOrphan(field string) bool
}

// Operations lists the operations on counts, such as semaphores, that Redis remembers.
type Operations interface {
	// Take returns operations that were answered. The next command makes Redis forget them.
	Take(key string) []string
	// Note adds an operation.
	Note(key, operation string)
}

// Config configures an Acquirer. All fields are required.
type Config struct {
	Redis      Redis
	Sender     *resend.Sender
	Queues     *queue.Queues
	Wakeups    *wakeup.Subscriber
	Reaper     Reaper
	Holdings   *holding.Holdings
	Operations Operations

	Service   context.Context                             //nolint:containedctx // canceled when the client begins to close
	NextField func(kind *redisstore.Kind) string          // returns a field that was never used
	FailFast  func(ctx context.Context, key string) error // returns an error while the node of the key is known to be silent
	OneScript func(keys []string) bool                    // reports whether one script may use all keys

	// FindCarried looks for a holder of key in ctx. If again is not nil, the acquisition re-enters that holder. If under
	// is not nil, the acquisition acquires the lock in addition to that holder. FindCarried returns an error if the
	// acquisition must fail, for example because a reader wants to write.
	FindCarried func(ctx context.Context, key string, w *Wish) (again, under *holding.Holder, err error)
	// FindLoss returns the loss of one of the keys that ctx carries; nil if none was lost.
	FindLoss func(ctx context.Context, keys []string) error
	// AfterAcquire is called at the end of an acquisition of a key that began at start.
	AfterAcquire func(ctx context.Context, key string, start time.Time, err error)
}

// Acquirer takes the locks of one client. It is safe for concurrent use.
type Acquirer struct{ Config }

// New returns an Acquirer.
func New(cfg Config) *Acquirer { return &Acquirer{cfg} }

// Wish describes the lock that a caller wants.
type Wish struct {
	Kind       *redisstore.Kind
	Keys       []string // sorted, without repetitions
	Wait       time.Duration
	Forever    bool // the wait lasts until the context ends
	Lease      time.Duration
	Renewed    bool // the watchdog renews the lease
	Token      bool // a fencing token is wanted
	Once       bool // the acquisition fails if the context carries the lock
	MaxWaiters int
	Demand     string                          // permits of a semaphore: see [redisstore.Terms]
	Operation  string                          // follows the fields of an operation on a count
	BeforeWait func(ctx context.Context) error // is called once before the wait, if not nil

	// Contended, if not nil, is called the first time that the lock is found taken. ttl is the rest of the lease.
	Contended func(blockedBy string, ttl time.Duration)

	under     *holding.Holder // a holder of the caller that can share the lock; nil: none
	member    bool            // the wish is for one server of a Redlock
	asksAgain bool            // the wish is for one server of a Redlock that may wait and asks the server again
	admitted  bool            // the caller passed the limits of waiters before
}

// MayWait reports whether the caller joins a queue.
func (w *Wish) MayWait() bool { return w.Forever || w.Wait > 0 }

// Report describes how an acquisition went.
type Report struct {
	Start     time.Time // set by the caller: the wait time counts from here
	Acquired  time.Time
	Contended bool          // the first attempt was refused, or others were queued before it
	Reentered bool          // the context already carried all keys
	HandedOff bool          // a release of this client gave the lock to the caller
	Attempts  int           // commands sent
	RoundTrip time.Duration // round trip of the command that succeeded
	BlockedBy string        // the field that had the lock at the last refusal, or from which the caller got the lock
	Field     string        // field of the grant
	Token     int64
}

// BusyError reports that the lock was not acquired. Package core turns it into its own error.
type BusyError struct {
	Key        string
	Waited     time.Duration
	RetryAfter time.Duration // the rest of the lease at the last refusal; 0: unknown
	BlockedBy  string        // field of the holder at the last refusal; empty: unknown
	OwnHold    bool          // another hold of this client has the lock
	Cause      error         // why the wait ended; nil: the wait time passed
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

// NotQueued returns the error of a caller that the queue of a key refused.
func NotQueued(err error, key string, kind *redisstore.Kind) error {
	if other, ok := errors.AsType[*queue.KindError](err); ok {
		return failure.Invalidf("this client uses %q as a %s; one name is for one kind: use that kind here too, or another name for the %s", key, other.Kind, kind.Noun())
	}
	return failure.TooManyWaiters
}

// lateAnswer lets the reaper check whether an acquire that was given up was answered later.
type lateAnswer struct {
	call        *redisstore.Call[redisstore.Grant]
	leavesField bool // after a refusal or an error, the field may be in a queue in Redis, because of this or an earlier call
}

// Late returns the outcome of the acquire, if its answer has arrived.
func (l lateAnswer) Late() reaper.Outcome {
	grant, fate, err := l.call.Late()
	switch {
	case wire.Pending(err):
		return reaper.Pending
	case wire.Short(err):
		return reaper.Granted // too few replicas acknowledged
	case err != nil && fate == wire.Unknown:
		return reaper.Unknown
	case (err != nil || grant.Refusal != nil) && !l.leavesField:
		return reaper.Unchanged
	default:
		return reaper.Granted
	}
}
