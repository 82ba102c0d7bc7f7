package lockz

import (
	"context"
	"log/slog"
	"strconv"
	"time"
)

// deadlocked keeps, counts and logs a cycle that a waiter has closed.
func (p *Page) deadlocked(ctx context.Context, c *cycle) {
	p.cycles.add(c)
	p.deadlocks.Add(ctx, 1)
	ok, suppressed := p.logged.Allow(time.Now())
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.Int("callers", len(c.steps))}
	for i, s := range c.steps {
		attrs = append(attrs, slog.Attr{Key: "caller_" + strconv.Itoa(i+1), Value: slog.GroupValue(p.stepAttrs(s)...)})
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	p.cfg.logger.LogAttrs(ctx, slog.LevelError, "deadlock: callers wait for each other's locks", attrs...)
}

// stepAttrs is what a log says of one caller in a deadlock.
func (p *Page) stepAttrs(s step) []slog.Attr {
	list := []slog.Attr{slog.String("rule", printable(s.waiter.rule.name, maxName)), slog.String("kind", string(s.waiter.acq.Kind))}
	if p.cfg.rawKeys {
		list = append(list, slog.String("waits_for", printable(s.waiter.acq.Key, maxName)))
	} else {
		list = append(list, slog.String("waits_for_hash", hashOf(s.waiter.acq.Key)))
	}
	list = append(list, slog.String("blocked_by", s.by.info.Field))
	if s.waiter.trace.IsValid() {
		list = append(list, slog.String("trace_id", s.waiter.trace.String()))
	}
	return list
}
