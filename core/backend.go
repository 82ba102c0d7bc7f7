package core

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/acquire"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// backendQuiet is for how long after an outage was reported the next one is not: a single
// key that cannot be locked, beside others that can, is reported once in a while. So is one that
// holds something else.
const backendQuiet = 10 * time.Second

// backend is whether locks can be acquired from Redis, as the acquisitions see it.
//
//	available ── one is ErrUnavailable ──▶ unavailable ── one succeeds ──▶ available
//
// Both changes are reported, unless the outage began too soon after the one before. A key that
// holds no lock is no outage: what else Redis has is not looked at. Nor is an answer that had not
// come when a short wait time ended: if none comes at all, the node is found silent after the
// backend timeout, and that is what the next acquisitions fail with.
type backend struct {
	observers *observers
	clientID  string
	timeout   time.Duration // the backend timeout
	down      atomic.Bool

	mu       sync.Mutex
	reported bool // the outage that is going on was
	since    time.Time
	quiet    time.Time // until then no outage is reported
	keyQuiet time.Time // until then no key that holds no lock
}

// note takes in how the acquisition of a key ended that began at start. One that works costs a look at
// an atomic.
func (b *backend) note(ctx context.Context, key string, start time.Time, err error) {
	switch {
	case err == nil:
		if b.down.Load() {
			b.returned(ctx)
		}
	case wire.WrongType(err):
		b.noLock(ctx, key, err)
	case errors.Is(err, ErrUnavailable):
		if !b.down.Load() && !b.tooEarly(start, err) {
			b.failed(ctx, err)
		}
	}
}

// tooEarly reports whether an acquisition gave up before it could know that Redis is silent.
func (b *backend) tooEarly(start time.Time, err error) bool {
	return (wire.Unanswered(err) || errors.Is(err, acquire.ErrSilent)) && time.Since(start) < b.timeout
}

func (b *backend) failed(ctx context.Context, cause error) {
	b.mu.Lock()
	if b.down.Load() {
		b.mu.Unlock()
		return
	}
	now := time.Now()
	b.down.Store(true)
	b.since, b.reported = now, !now.Before(b.quiet)
	reported := b.reported
	if reported {
		b.quiet = now.Add(backendQuiet)
	}
	b.mu.Unlock()
	if reported {
		b.notify(ctx, BackendChange{ClientID: b.clientID, Cause: public(cause)})
	}
}

func (b *backend) returned(ctx context.Context) {
	b.mu.Lock()
	if !b.down.Load() {
		b.mu.Unlock()
		return
	}
	b.down.Store(false)
	reported, lasted := b.reported, time.Since(b.since)
	b.mu.Unlock()
	if reported {
		b.notify(ctx, BackendChange{ClientID: b.clientID, Available: true, Lasted: lasted})
	}
}

// notify notifies the observers, or writes to the log if there is none: what package telemetry
// would write, so that who looks for it finds it with both.
func (b *backend) notify(ctx context.Context, change BackendChange) {
	obs := b.observers
	switch {
	case obs.backend.Observed():
		obs.backend.Notify(ctx, change)
	case change.Available:
		slog.LogAttrs(ctx, slog.LevelInfo, "lock backend available again",
			slog.String("client", change.ClientID), slog.Duration("after", change.Lasted))
	default:
		slog.LogAttrs(ctx, slog.LevelError, "lock backend unavailable",
			slog.String("client", change.ClientID), slog.String("error", ErrorText(change.Cause)))
	}
}

// noLock logs that a key holds no lock, once in a while, unless there is an observer of
// acquisitions: that gets the same as the outcome of each one.
func (b *backend) noLock(ctx context.Context, key string, cause error) {
	if b.observers.acquireEnd.Observed() {
		return
	}
	now := time.Now()
	b.mu.Lock()
	quiet := now.Before(b.keyQuiet)
	if !quiet {
		b.keyQuiet = now.Add(backendQuiet)
	}
	b.mu.Unlock()
	if quiet {
		return
	}
	slog.LogAttrs(ctx, slog.LevelError, "key holds something that is not a lock",
		slog.String("client", b.clientID), slog.String("key_hash", KeyHash(key)), slog.String("error", ErrorText(public(cause))))
}
