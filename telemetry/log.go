package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/internal/ratelimit"
)

// logger writes log records. Each message has a separate rate limit.
type logger struct {
	out                                                                          *slog.Logger // nil: none was given
	rawKeys                                                                      bool
	lost, heldTooLong, left, leaked, release, renewal, backend, noLock, longWait limitedMessage
}

// limitedMessage is a message whose records are rate-limited.
type limitedMessage struct {
	limit ratelimit.Limiter
	level slog.Level
	text  string
}

func newLogger(out *slog.Logger, rawKeys bool) *logger {
	return &logger{
		out:         out,
		rawKeys:     rawKeys,
		lost:        limitedMessage{level: slog.LevelError, text: "lock lost under its holder"},
		heldTooLong: limitedMessage{level: slog.LevelWarn, text: "lock held too long: it is not renewed any more"},
		left:        limitedMessage{level: slog.LevelWarn, text: "lock left to its lease: the client was closed under its holder"},
		leaked:      limitedMessage{level: slog.LevelError, text: "lock never released: its Hold was garbage-collected"},
		release:     limitedMessage{level: slog.LevelWarn, text: "lock release failed"},
		renewal:     limitedMessage{level: slog.LevelWarn, text: "lock renewal failed"},
		backend:     limitedMessage{level: slog.LevelWarn, text: "lock backend failed"},
		noLock:      limitedMessage{level: slog.LevelError, text: "key holds something that is not a lock"}, // does not go away by itself
		longWait:    limitedMessage{level: slog.LevelWarn, text: "long wait for a lock"},
	}
}

// alarm returns the logger for records that must not be lost: the logger of [WithLogger] or, without one,
// the default logger.
func (l *logger) alarm() *slog.Logger {
	if l.out == nil {
		return slog.Default()
	}
	return l.out
}

// info writes a record that is not limited.
func (l *logger) info(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	if l.out != nil {
		l.out.LogAttrs(ctx, level, text, attrs...)
	}
}

// write writes a limited record. It calls attrs only if the record is written.
func (l *logger) write(ctx context.Context, m *limitedMessage, attrs func() []slog.Attr) {
	if l.out == nil || !l.out.Enabled(ctx, m.level) {
		return
	}
	ok, suppressed := m.limit.Allow(time.Now())
	if !ok {
		return
	}
	list := attrs()
	if suppressed > 0 {
		list = append(list, slog.Int("suppressed", suppressed))
	}
	l.out.LogAttrs(ctx, m.level, m.text, list...)
}

// logHold writes a record about a hold.
func (l *logger) logHold(ctx context.Context, m *limitedMessage, id ruleID, h *core.HoldInfo, err error) {
	l.write(ctx, m, func() []slog.Attr {
		return append(l.lockAttrs(id, &h.Acquisition, err),
			slog.String("holder", h.Field), slog.Duration("held", time.Since(h.Acquired)))
	})
}

// logBackend writes a record about an acquisition for which Redis failed or had something other than a
// lock under the key.
func (l *logger) logBackend(ctx context.Context, id ruleID, r *core.AcquireResult) {
	m := &l.backend
	if errorType(r.Err) == errorWrongType {
		m = &l.noLock
	}
	l.write(ctx, m, func() []slog.Attr { return l.acquireAttrs(id, r) })
}

// logLongWait writes a record about an acquisition that waited for a long time.
func (l *logger) logLongWait(ctx context.Context, id ruleID, r *core.AcquireResult) {
	l.write(ctx, &l.longWait, func() []slog.Attr {
		return append(l.acquireAttrs(id, r), slog.String("outcome", string(r.Outcome)), slog.String("blocked_by", r.BlockedBy))
	})
}

func (l *logger) acquireAttrs(id ruleID, r *core.AcquireResult) []slog.Attr {
	err := r.Err
	if r.Outcome == core.OutcomeBusy {
		err = nil // outcome, waited and blocked_by already show that the lock was taken
	}
	return append(l.lockAttrs(id, &r.Acquisition, err), slog.Duration("waited", r.Waited))
}

func (l *logger) lockAttrs(id ruleID, a *core.Acquisition, err error) []slog.Attr {
	list := []slog.Attr{slog.String("rule", id.name), slog.String("kind", string(id.kind))}
	if l.rawKeys {
		list = append(list, slog.String("key", a.Key))
	} else {
		list = append(list, slog.String("key_hash", core.KeyHash(a.Key)))
	}
	if err != nil {
		list = append(list, slog.String("error_type", errorType(err)), slog.String("error", l.errorText(err)))
	}
	return list
}

// errorText returns the text of an error. It hashes keys in the text unless keys may be logged.
func (l *logger) errorText(err error) string {
	if l.rawKeys {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return core.ErrorText(err)
}

// observeBackend logs that locks can no longer be acquired from Redis, with the cause, and that they can
// be acquired again. Without [WithLogger], the records go to [slog.Default], because all requests fail
// in between.
func (l *logger) observeBackend(ctx context.Context, b core.BackendChange) {
	client := slog.String("client", b.ClientID)
	if b.Available {
		l.alarm().LogAttrs(ctx, slog.LevelInfo, "lock backend available again", client, slog.Duration("after", b.Lasted))
		return
	}
	l.alarm().LogAttrs(ctx, slog.LevelError, "lock backend unavailable",
		client, slog.String("error_type", errorType(b.Cause)), slog.String("error", l.errorText(b.Cause)))
}
