package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/internal/ratelimit"
)

// logger writes records of a few kinds, each with a limit of its own.
type logger struct {
	out                                                             *slog.Logger
	lost, left, leaked, release, renewal, backend, noLock, longWait record
}

// record is a kind of record.
type record struct {
	limit ratelimit.Limiter
	level slog.Level
	text  string
}

func newLogger(out *slog.Logger) *logger {
	return &logger{
		out:      out,
		lost:     record{level: slog.LevelError, text: "lock lost under its holder"},
		left:     record{level: slog.LevelWarn, text: "lock left to its lease: the client was closed under its holder"},
		leaked:   record{level: slog.LevelError, text: "lock never released: its Hold was garbage-collected"},
		release:  record{level: slog.LevelWarn, text: "lock release failed"},
		renewal:  record{level: slog.LevelWarn, text: "lock renewal failed"},
		backend:  record{level: slog.LevelWarn, text: "lock backend failed"},
		noLock:   record{level: slog.LevelError, text: "key holds something that is not a lock"}, // which does not pass by itself
		longWait: record{level: slog.LevelWarn, text: "long wait for a lock"},
	}
}

// write logs what attrs makes, unless the level is off or the limit reached.
func (l *logger) write(ctx context.Context, r *record, attrs func() []slog.Attr) {
	if !l.out.Enabled(ctx, r.level) {
		return
	}
	ok, suppressed := r.limit.Allow(time.Now())
	if !ok {
		return
	}
	list := attrs()
	if suppressed > 0 {
		list = append(list, slog.Int("suppressed", suppressed))
	}
	l.out.LogAttrs(ctx, r.level, r.text, list...)
}

func (t *Telemetry) logHold(ctx context.Context, r *record, rule *rule, h *core.HoldInfo, err error) {
	t.log.write(ctx, r, func() []slog.Attr { return t.holdAttrs(rule, h, err) })
}

func (t *Telemetry) logBackend(ctx context.Context, rule *rule, r *core.AcquireResult) {
	kind := &t.log.backend
	if errorType(r.Err) == errorWrongType {
		kind = &t.log.noLock
	}
	t.log.write(ctx, kind, func() []slog.Attr { return t.acquireAttrs(rule, r) })
}

func (t *Telemetry) logLongWait(ctx context.Context, rule *rule, r *core.AcquireResult) {
	t.log.write(ctx, &t.log.longWait, func() []slog.Attr {
		return append(t.acquireAttrs(rule, r), slog.String("outcome", string(r.Outcome)), slog.String("blocked_by", r.BlockedBy))
	})
}

func (t *Telemetry) holdAttrs(rule *rule, h *core.HoldInfo, err error) []slog.Attr {
	return append(t.lockAttrs(rule, &h.Acquisition, err),
		slog.String("holder", h.Field), slog.Duration("held", time.Since(h.Acquired)))
}

func (t *Telemetry) acquireAttrs(rule *rule, r *core.AcquireResult) []slog.Attr {
	err := r.Err
	if r.Outcome == core.OutcomeBusy {
		err = nil // it is none that the lock was taken, which outcome, waited and blocked_by say
	}
	return append(t.lockAttrs(rule, &r.Acquisition, err), slog.Duration("waited", r.Waited))
}

func (t *Telemetry) lockAttrs(rule *rule, a *core.Acquisition, err error) []slog.Attr {
	list := []slog.Attr{slog.String("rule", rule.name), slog.String("kind", string(rule.kind))}
	if t.rawKeys {
		list = append(list, slog.String("key", a.Key))
	} else {
		list = append(list, slog.String("key_hash", core.KeyHash(a.Key)))
	}
	if err != nil {
		list = append(list, slog.String("error_type", errorType(err)), slog.String("error", t.errorText(err)))
	}
	return list
}

// errorText is the text of an error, in which the key has its hash, unless keys are
// asked for.
func (t *Telemetry) errorText(err error) string {
	if t.rawKeys {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return core.ErrorText(err)
}

// observeBackend logs that locks cannot be acquired from Redis any more, with the cause, and
// that they can again. Without [WithLogger] that goes to [slog.Default]: it is why all
// requests fail.
func (t *Telemetry) observeBackend(ctx context.Context, b core.BackendChange) {
	client := slog.String("client", b.ClientID)
	if b.Available {
		t.alarm().LogAttrs(ctx, slog.LevelInfo, "lock backend available again", client, slog.Duration("after", b.Lasted))
		return
	}
	t.alarm().LogAttrs(ctx, slog.LevelError, "lock backend unavailable",
		client, slog.String("error_type", errorType(b.Cause)), slog.String("error", t.errorText(b.Cause)))
}

// alarm is where goes what must not be lost: to the logger that was given, else to the
// default one.
func (t *Telemetry) alarm() *slog.Logger {
	if t.silent {
		return slog.Default()
	}
	return t.log.out
}

// errorWrongType is the type of the error that a key holds something other than a lock.
const errorWrongType = "wrong_type"

// errorType is the value of error.type: a word of a short list.
func errorType(err error) string {
	var timeout interface{ Timeout() bool }
	var reply interface {
		error
		RedisError()
	}
	switch {
	case errors.Is(err, core.ErrLost):
		return outcomeLost
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &reply):
		if strings.Contains(reply.Error(), "WRONGTYPE") { // of a script, behind other words
			return errorWrongType
		}
		return "redis_error"
	case errors.Is(err, core.ErrUnavailable):
		return "unavailable"
	default:
		return "_OTHER" // the word that the semantic conventions have for the rest
	}
}
