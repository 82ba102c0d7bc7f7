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

// backendQuiet is the least time between two reports of an outage. It limits the reports if a single key cannot be
// locked while others can.
const backendQuiet = 10 * time.Second

// availability derives from the outcomes of acquisitions whether Redis is available, and notifies the observers of
// changes. It changes no outcome: the circuit breaker (package breaker) makes acquisitions fail fast.
//
//	available ── one is ErrUnavailable ──▶ unavailable ── one succeeds ──▶ available
//
// Both changes are reported, unless the outage began within backendQuiet of the last reported one. A key that is not a
// lock is not an outage. Neither is a missing answer at the end of a wait time that is shorter than the backend
// timeout. If no answer comes at all, the node counts as silent after the backend timeout, and then further
// acquisitions report the outage.
type availability struct {
	observers *observers
	clientID  string
	timeout   time.Duration // the backend timeout
	down      atomic.Bool

	unobserved *unobserved // logs a key that is not a lock

	mu       sync.Mutex
	reported bool // whether the present outage was reported
	since    time.Time
	quiet    time.Time // until then no outage is reported
}

// record records the outcome of an acquisition of a key that began at start. After a success it only reads one atomic.
func (b *availability) record(ctx context.Context, key string, start time.Time, err error) {
	switch {
	case err == nil:
		if b.down.Load() {
			b.recordReturn(ctx)
		}
	case wire.WrongType(err):
		b.reportNotLock(ctx, key, err)
	case errors.Is(err, ErrUnavailable):
		if !b.down.Load() && !b.tooEarly(start, err) {
			b.recordOutage(ctx, err)
		}
	}
}

// tooEarly reports whether an acquisition gave up too early to conclude that Redis is silent.
func (b *availability) tooEarly(start time.Time, err error) bool {
	return (wire.Unanswered(err) || errors.Is(err, acquire.ErrNoAnswer)) && time.Since(start) < b.timeout
}

func (b *availability) recordOutage(ctx context.Context, cause error) {
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
		b.notify(ctx, BackendChange{ClientID: b.clientID, Cause: publicError(cause)})
	}
}

func (b *availability) recordReturn(ctx context.Context) {
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

// notify notifies the observers. Without an observer of the backend it logs the same messages as package telemetry, so
// that a search finds both.
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

// reportNotLock logs that a key is not a lock. If there is an observer of acquisitions, reportNotLock logs nothing,
// because the observer receives the outcome of each acquisition.
func (b *availability) reportNotLock(ctx context.Context, key string, cause error) {
	if b.observers.acquireEnd.Observed() {
		return
	}
	b.unobserved.notLock.write(ctx, func() []slog.Attr {
		return []slog.Attr{
			slog.String("client", b.clientID), slog.String("key_hash", KeyHash(key)), slog.String("error", ErrorText(publicError(cause))),
		}
	})
}
