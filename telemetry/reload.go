package telemetry

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/core/ruleset"
)

// reloads reports the loads of rule files: the metrics reload.timestamp and reloads, and a log record of each
// load.
type reloads struct {
	inst *instruments
	log  *logger

	mu      sync.Mutex
	inForce map[string]ruleset.Reload // the last applied load, by file
	refused map[string]bool           // files whose last content was refused
}

func newReloads(inst *instruments, log *logger) *reloads {
	return &reloads{inst: inst, log: log, inForce: make(map[string]ruleset.Reload), refused: make(map[string]bool)}
}

// observe counts and logs a load of a rule file.
func (o *reloads) observe(r ruleset.Reload) {
	ctx := context.Background() //nolint:forbidigo // files change outside of requests
	o.mu.Lock()
	wasRefused := o.refused[r.File]
	o.refused[r.File] = r.Err != nil
	if r.Err == nil {
		o.inForce[r.File] = r
	}
	o.mu.Unlock()
	if r.Err != nil {
		o.inst.reloads.Add(ctx, 1, metric.WithAttributes(attrOutcome.String(outcomeRefused)))
		o.logRefused(ctx, r)
		return
	}
	o.inst.reloads.Add(ctx, 1, metric.WithAttributes(attrOutcome.String(outcomeApplied)))
	o.inst.reloads.Add(ctx, 0, metric.WithAttributes(attrOutcome.String(outcomeRefused)))
	o.logApplied(ctx, r, wasRefused)
}

// logRefused logs every problem of a refused file as an error.
func (o *reloads) logRefused(ctx context.Context, r ruleset.Reload) {
	text := "lock rules refused: the old ones stay in force"
	if r.Set == nil {
		text = "lock rules refused"
	}
	attrs := []slog.Attr{slog.String("file", r.File), slog.String("hash", r.Hash)}
	o.log.alarm().LogAttrs(ctx, slog.LevelError, text, append(attrs, ruleset.LogAttrs(r.Err)...)...)
}

// logApplied logs the hash of an applied file: as an error if endpoints run unlocked from now on
// ([ruleset.Reload.Unlocked]), as a warning if the file is disabled or a dry run, and otherwise as info.
// If the file was refused before, the record goes to the logger of the refusal.
func (o *reloads) logApplied(ctx context.Context, r ruleset.Reload, wasRefused bool) {
	write, level, text, settings := o.log.info, slog.LevelInfo, "lock rules loaded", r.Set.Settings()
	unlocked := r.Unlocked()
	if len(unlocked) > 0 {
		text += ", and endpoints run unlocked"
	}
	if wasRefused {
		write, text = o.log.alarm().LogAttrs, text+"; the refusal has ended"
	}
	attrs := []slog.Attr{slog.String("file", r.File), slog.String("hash", r.Hash), slog.Int("rules", len(r.Set.Rules()))}
	if settings.Disabled || settings.DryRun {
		level = slog.LevelWarn
		attrs = append(attrs, slog.Bool("disabled", settings.Disabled), slog.Bool("dry_run", settings.DryRun))
	}
	if len(unlocked) > 0 {
		write, level = o.log.alarm().LogAttrs, slog.LevelError
		attrs = append(attrs, slog.Any("unlocked", unlocked))
	}
	write(ctx, level, text, attrs...)
}

// collect reports the time at which each file in force was loaded.
func (o *reloads) collect(m metric.Observer) {
	o.mu.Lock()
	loaded := slices.Collect(maps.Values(o.inForce))
	o.mu.Unlock()
	for _, r := range loaded {
		m.ObserveFloat64(o.inst.reload, float64(r.Time.UnixMilli())/1000, metric.WithAttributes(attrHash.String(r.Hash)))
	}
}
