package holding

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
)

// Redis runs the scripts of a held lock.
type Redis interface {
	// Hold writes the number of holds. If lease is not 0, Hold raises the lease in Redis to lease. It never lowers
	// the lease in Redis.
	Hold(now time.Time, c redisstore.Claim, count int, lease time.Duration) redisstore.Call[bool]
	// Refresh sets the lease, up or down.
	Refresh(now time.Time, c redisstore.Claim, lease time.Duration) redisstore.Call[redisstore.Change]
	// HandOff puts the field to in the place of the holder.
	HandOff(now time.Time, c redisstore.Claim, to string, t redisstore.Terms) redisstore.Call[redisstore.Change]
	// Release frees the lock and publishes a message.
	Release(now time.Time, c redisstore.Claim) redisstore.Call[redisstore.Released]
	// CountsOneNode reports whether Released.Notified counts only the subscribers of one node of a Cluster.
	CountsOneNode() bool
}

// Reaper accepts fields for the reaper, which clears them up in Redis after commands without an answer.
type Reaper interface {
	// Relinquish clears up a field that no command can bring back.
	Relinquish(kind *redisstore.Kind, keys []string, field string, lease time.Duration)
	// Abandon clears up a field that a command without an answer may still create.
	Abandon(kind *redisstore.Kind, keys []string, field string, call reaper.LateAnswer, lease time.Duration)
}

// Watcher is notified of the events of holds. Its methods must not block.
type Watcher interface {
	Renewed(h *Hold, err error, late time.Duration)
	Lost(h *Hold, cause error)
	Leaked(h *Hold)
	Ended(h *Hold, how End)
}

// Config configures the holds of a client. All fields are required.
type Config struct {
	ClientID string // determines the order in which the mutexes of several clients are locked
	Redis    Redis
	Sender   *resend.Sender
	Queues   *queue.Queues
	Reaper   Reaper
	Watchdog *lease.Watchdog
	Watcher  Watcher

	KeyOf     func(name string) string                    // returns the Redis key of a name
	NextField func(kind *redisstore.Kind) string          // returns a field that was never used
	FailFast  func(ctx context.Context, key string) error // returns an error while the node of the key is known to be silent
	Spawn     func(work func(ctx context.Context))        // runs work that Close waits for
	Life      context.Context                             //nolint:containedctx // canceled when that work has to stop
	Acks      bool                                        // replicas acknowledge every acquisition, so each has its own command
}

// Holdings manages the holds of one client.
type Holdings struct {
	Config

	underWay operationsUnderWay
}

// New returns Holdings without a hold.
func New(cfg Config) *Holdings {
	return &Holdings{Config: cfg, underWay: operationsUnderWay{last: make(chan struct{}, 1)}}
}

// operationsUnderWay counts the operations of holds that may have a command at Redis: releases, refreshes and leaves.
type operationsUnderWay struct {
	n       atomic.Int64
	awaited atomic.Bool
	last    chan struct{} // receives when the last operation has ended, once the end is awaited
}

func (u *operationsUnderWay) begin() { u.n.Add(1) }

func (u *operationsUnderWay) end() {
	if u.n.Add(-1) == 0 && u.awaited.Load() {
		select {
		case u.last <- struct{}{}:
		default:
		}
	}
}

// AwaitOperations waits until no operation of a hold is under way, but not beyond limit: a hook of the Redis client may
// block for longer.
func (hs *Holdings) AwaitOperations(limit time.Time) {
	u, timer := &hs.underWay, time.NewTimer(time.Until(limit))
	defer timer.Stop()
	u.awaited.Store(true)
	for u.n.Load() != 0 {
		select {
		case <-u.last:
		case <-timer.C:
			return
		}
	}
}
