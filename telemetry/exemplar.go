package telemetry

import (
	"context"
	"time"
)

// Each acquisition leads to its trace by the exemplars of wait.duration and hold.duration. The
// other histograms have exemplars only of values that somebody asks about: an exemplar costs as
// much as the value.
const (
	slowTrip = time.Millisecond // a round trip from which on Redis is slow
	scarce   = 0.5              // so little of a lease was left
)

// exemplarIf gives the context to record with: without a span there is no exemplar.
func exemplarIf(ctx context.Context, wanted bool) context.Context {
	if wanted {
		return ctx
	}
	return context.Background() //nolint:forbidigo // one without a span
}
