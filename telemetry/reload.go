package telemetry

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/core/ruleset"
)

// observeReload counts an attempt to take a rule file into force, and logs it: a
// refusal as an error with every problem, else the new hash: as an error, too, if
// handlers run unlocked from now on ([ruleset.Reload.Unlocked]), as a warning if the file
// is a dry run. The end of a refusal is logged where the refusal was.
func (t *Telemetry) observeReload(r ruleset.Reload) {
	ctx := context.Background() //nolint:forbidigo // a file changes in no request
	t.mu.Lock()
	wasRefused := t.refused[r.File]
	t.refused[r.File] = r.Err != nil
	if r.Err == nil {
		t.reloads[r.File] = r
	}
	t.mu.Unlock()
	if r.Err != nil {
		t.inst.reloads.Add(ctx, 1, metric.WithAttributes(attrOutcome.String(outcomeRefused)))
		t.logRefusal(ctx, r)
		return
	}
	t.inst.reloads.Add(ctx, 1, metric.WithAttributes(attrOutcome.String(outcomeApplied)))
	t.inst.reloads.Add(ctx, 0, metric.WithAttributes(attrOutcome.String(outcomeRefused)))
	t.logApplied(ctx, r, wasRefused)
}

func (t *Telemetry) logRefusal(ctx context.Context, r ruleset.Reload) {
	text := "lock rules refused: the old ones stay in force"
	if r.Set == nil {
		text = "lock rules refused"
	}
	attrs := []slog.Attr{slog.String("file", r.File), slog.String("hash", r.Hash)}
	t.alarm().LogAttrs(ctx, slog.LevelError, text, append(attrs, ruleset.LogAttrs(r.Err)...)...)
}

func (t *Telemetry) logApplied(ctx context.Context, r ruleset.Reload, wasRefused bool) {
	out, level, text, settings := t.log.out, slog.LevelInfo, "lock rules loaded", r.Set.Settings()
	unlocked := r.Unlocked()
	if len(unlocked) > 0 {
		text += ", and endpoints run unlocked"
	}
	if wasRefused {
		out, text = t.alarm(), text+"; the refusal is over"
	}
	attrs := []slog.Attr{slog.String("file", r.File), slog.String("hash", r.Hash), slog.Int("rules", len(r.Set.Rules()))}
	if settings.Disabled || settings.DryRun {
		level = slog.LevelWarn
		attrs = append(attrs, slog.Bool("disabled", settings.Disabled), slog.Bool("dry_run", settings.DryRun))
	}
	if len(unlocked) > 0 {
		out, level = t.alarm(), slog.LevelError
		attrs = append(attrs, slog.Any("unlocked", unlocked))
	}
	out.LogAttrs(ctx, level, text, attrs...)
}

// observeWarning logs a warning about rules. Without [WithLogger] it goes to [slog.Default].
func (t *Telemetry) observeWarning(p *ruleset.Problem) {
	ctx := context.Background() //nolint:forbidigo // rules are checked in no request
	t.alarm().LogAttrs(ctx, slog.LevelWarn, "warning about lock rules", ruleset.LogAttrs(p)...)
}

func (t *Telemetry) collectReloads(o metric.Observer) {
	t.mu.Lock()
	loaded := slices.Collect(maps.Values(t.reloads))
	t.mu.Unlock()
	for _, r := range loaded {
		o.ObserveFloat64(t.inst.reload, float64(r.Time.UnixMilli())/1000, metric.WithAttributes(attrHash.String(r.Hash)))
	}
}
