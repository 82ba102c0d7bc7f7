package holding

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
)

// Redis has the scripts of a lock that is held.
type Redis interface {
	// Hold writes the number of holds. A lease that is not 0 raises the lease in Redis, never lowers it.
	Hold(now time.Time, c redisstore.Claim, count int, lease time.Duration) redisstore.Call[bool]
	// Refresh sets the lease, up or down.
	Refresh(now time.Time, c redisstore.Claim, lease time.Duration) redisstore.Call[redisstore.Change]
	// HandOff puts another field in the place of the holder.
	HandOff(now time.Time, c redisstore.Claim, to string, t redisstore.Terms) redisstore.Call[redisstore.Change]
	// Release frees the lock and publishes that.
	Release(now time.Time, c redisstore.Claim) redisstore.Call[redisstore.Released]
	// CountsOneNode reports whether Released.Notified counts the subscribers of one node of a Cluster only.
	CountsOneNode() bool
}

// Graves clear up fields in Redis after commands without an answer.
type Graves interface {
	// Relinquish has a field cleared up that no command can bring back.
	Relinquish(kind *redisstore.Kind, keys []string, field string, lease time.Duration)
	// Abandon has a field cleared up that a command without an answer may still bring.
	Abandon(kind *redisstore.Kind, keys []string, field string, call reaper.LateAnswer, lease time.Duration)
}

// Watcher learns what happens to holds. It must not block.
type Watcher interface {
	Renewed(h *Hold, err error, late time.Duration)
	Lost(h *Hold, cause error)
	Leaked(h *Hold)
	Ended(h *Hold, how End)
}

// Config is what the holds of a client need. All of it is required.
type Config struct {
	ClientID string // the order in which the mutexes of several clients are taken follows from it
	Redis    Redis
	Sender   *resend.Sender
	Queues   *queue.Queues
	Graves   Graves
	Watchdog *lease.Watchdog
	Watcher  Watcher

	KeyOf     func(name string) string                    // makes the Redis key of a name
	NextField func(kind *redisstore.Kind) string          // makes a field that was never used
	FailFast  func(ctx context.Context, key string) error // is not nil while the node of the key is known to be silent
	Spawn     func(work func(ctx context.Context))        // runs work that the client waits for when it is closed
	Life      context.Context                             //nolint:containedctx // ends with that work
	Acks      bool                                        // replicas acknowledge every acquisition, so each has its own command
}

// Holdings are the holds of one client.
type Holdings struct{ Config }

// New returns the holds of a client, of which there are none yet.
func New(cfg Config) *Holdings { return &Holdings{cfg} }
