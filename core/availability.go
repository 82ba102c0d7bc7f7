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

// backendQuiet is how long after a report of an outage no other outage is reported, so that a single key which
// cannot be locked, beside others that can, is reported once in a while. The same is true of a key that is not a
// lock.
const backendQuiet = 10 * time.Second

// availability is whether locks can be acquired from Redis, as the acquisitions find it.
//
//	available ── one is ErrUnavailable ──▶ unavailable ── one succeeds ──▶ available
//
// Both changes are reported, unless the outage began too soon after the last one. A key that is not a lock is
// not an outage. A missing answer at the end of a short wait time is not one, either: if no answer comes at all,
// the node is found silent after the backend timeout, and the next acquisitions fail with that.
type availability struct {
	observers *observers
	clientID  string
	timeout   time.Duration // the backend timeout
	down      atomic.Bool

	mu       sync.Mutex
	reported bool // the present outage was reported
	since    time.Time
	quiet    time.Time // no outage is reported before
	keyQuiet time.Time // no key that is not a lock is reported before
}

// note records how the acquisition of a key that began at start has ended. If it has succeeded, note reads one
// atomic.
func (b *availability) note(ctx context.Context, key string, start time.Time, err error) {
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
func (b *availability) tooEarly(start time.Time, err error) bool {
	return (wire.Unanswered(err) || errors.Is(err, acquire.ErrNoAnswer)) && time.Since(start) < b.timeout
}

func (b *availability) failed(ctx context.Context, cause error) {
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

func (b *availability) returned(ctx context.Context) {
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

// notify notifies the observers. Without an observer of the backend it logs what package telemetry would
// log, so that a search finds both.
func (b *availability) notify(ctx context.Context, change BackendChange) {
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

// noLock logs once in a while that a key is not a lock, unless there is an observer of acquisitions, which gets
// that as the outcome of each.
func (b *availability) noLock(ctx context.Context, key string, cause error) {
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
