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

// Redis has the scripts that grant locks, and the script that takes a grant back.
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
	Keys       []string // sorted, without repetitions
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
	Cause      error         // why the wait ended; nil: the wait time has passed
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
