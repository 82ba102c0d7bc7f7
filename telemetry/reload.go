package telemetry

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/core/ruleset"
)

// ObserveReload counts an attempt to take a rule file into force, and logs it: a
// refusal as an error with every problem, else the new hash.
func (t *Telemetry) ObserveReload(r ruleset.Reload) {
	ctx := context.Background() //nolint:forbidigo // a file changes in no request
	if r.Err != nil {
		t.inst.reloads.Add(ctx, 1, metric.WithAttributes(attrOutcome.String(outcomeRefused)))
		t.log.out.LogAttrs(ctx, slog.LevelError, "lock rules refused: the old ones stay in force",
			slog.String("file", r.File), slog.String("hash", r.Hash), slog.String("error", r.Err.Error()))
		return
	}
	t.inst.reloads.Add(ctx, 1, metric.WithAttributes(attrOutcome.String(outcomeApplied)))
	t.inst.reloads.Add(ctx, 0, metric.WithAttributes(attrOutcome.String(outcomeRefused)))
	t.log.out.LogAttrs(ctx, slog.LevelInfo, "lock rules loaded",
		slog.String("file", r.File), slog.String("hash", r.Hash), slog.Int("rules", r.Set.Len()))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reloads[r.File] = r
}

// ObserveWarning logs what a rule file makes a warning.
func (t *Telemetry) ObserveWarning(p *ruleset.Problem) {
	ctx := context.Background() //nolint:forbidigo // rules are checked in no request
	t.log.out.LogAttrs(ctx, slog.LevelWarn, "lock rules", slog.String("problem", p.Error()))
}

func (t *Telemetry) collectReloads(o metric.Observer) {
	t.mu.Lock()
	loaded := slices.Collect(maps.Values(t.reloads))
	t.mu.Unlock()
	for _, r := range loaded {
		o.ObserveFloat64(t.inst.reload, float64(r.Time.UnixMilli())/1000, metric.WithAttributes(attrHash.String(r.Hash)))
	}
}
