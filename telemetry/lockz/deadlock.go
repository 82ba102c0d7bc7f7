package lockz

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/telemetry/internal/ratelimit"
)

// scopeName is the instrumentation scope of the counter.
const scopeName = "github.com/interlock-go/interlock/telemetry/lockz"

// persistence is the time after which a ring counts as a deadlock. A shorter ring ends by itself, because one
// of its callers only tries to get the lock, or waits only briefly.
const persistence = 2 * time.Second

// deadlocks watches rings of waiters. It keeps, counts and logs those that persist.
type deadlocks struct {
	graph  *graph
	names  keyNames
	logger *slog.Logger
	limit  ratelimit.Limiter
	found  history[*cycle]
}

// newDeadlocks creates the counter, too. The counter is read at each collection, so that it begins at zero also if
// the program sets its provider later: a monitor sees an increase only after it has seen 0.
func newDeadlocks(g *graph, cfg *config) (*deadlocks, error) {
	d := &deadlocks{graph: g, names: cfg.names(), logger: cfg.logger}
	_, err := cfg.meters.Meter(scopeName).Int64ObservableCounter("distributed_lock.deadlocks",
		metric.WithUnit("{deadlock}"), metric.WithDescription("rings of callers that wait for each other; made by package lockz"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(d.found.count())
			return nil
		}))
	if err != nil {
		return nil, fmt.Errorf("counter of deadlocks: %w", err)
	}
	return d, nil
}

// startWatch watches the ring c, which w closed, until w.endWatch is called.
func (d *deadlocks) startWatch(ctx context.Context, w *waiter, c *cycle) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { d.watch(ctx, w, c) })
	w.endWatch = func() {
		cancel()
		done.Wait()
	}
}

// watch reports a ring once, if it persists. When the ring ends, watch looks for another ring through w and
// continues with it.
func (d *deadlocks) watch(ctx context.Context, w *waiter, c *cycle) {
	tick := time.NewTicker(persistence)
	defer tick.Stop()
	for reported := false; c != nil; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch {
		case !c.lasts():
			c, reported = d.graph.find(w), false
		case !reported:
			d.report(ctx, c)
			reported = true
		}
	}
}

// report keeps, counts and logs a deadlock.
func (d *deadlocks) report(ctx context.Context, c *cycle) {
	d.found.add("", c)
	ok, suppressed := d.limit.Allow(time.Now())
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.Int("callers", len(c.steps))}
	for i, s := range c.steps {
		attrs = append(attrs, slog.Attr{Key: "caller_" + strconv.Itoa(i+1), Value: slog.GroupValue(d.callerAttrs(s)...)})
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	d.logger.LogAttrs(ctx, slog.LevelError, "deadlock: callers wait for each other's locks", attrs...)
}

// callerAttrs returns the group of one caller in the record of a deadlock.
func (d *deadlocks) callerAttrs(s step) []slog.Attr {
	list := []slog.Attr{
		slog.String("rule", printable(s.waiter.rule.name, maxName)), slog.String("kind", string(s.waiter.rule.kind)),
		slog.Any("holds_rules", rulesOf(s.waiter.carries)),
		d.names.attr("waits_for", "waits_for_hash", s.waiter.key),
		slog.String("blocked_by", s.by.field),
	}
	if s.waiter.trace.IsValid() {
		list = append(list, slog.String("trace_id", s.waiter.trace.String()))
	}
	return list
}

// rulesOf returns the rules of holds without re-entries, from the outermost hold, whose rule is usually the
// rule of the endpoint.
func rulesOf(holds []*hold) []string {
	list := []string{}
	for _, h := range slices.Backward(holds) {
		if !h.reentrant {
			list = append(list, printable(h.rule.name, maxName))
		}
	}
	return list
}
