package telemetry

import (
	"context"
	"log/slog"

	"github.com/interlock-go/interlock/core"
)

// ObserveBackend logs that locks cannot be acquired from Redis any more, with the cause, and
// that they can again. Without [WithLogger] that goes to [slog.Default]: it is why all
// requests fail.
func (t *Telemetry) ObserveBackend(ctx context.Context, b core.BackendChange) {
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
