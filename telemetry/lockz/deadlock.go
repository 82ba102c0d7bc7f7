package lockz

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"
)

// persistence is how long a ring lasts before it is a deadlock. A shorter ring ends by itself: one of
// its callers only tries to get a lock, or waits for a moment.
const persistence = 2 * time.Second

// startWatch watches the ring c, which w has closed, until endWatch is called.
func (p *Page) startWatch(ctx context.Context, w *waiter, c *cycle) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { p.watchRing(ctx, w, c) })
	w.endWatch = func() {
		cancel()
		done.Wait()
	}
}

// watchRing reports a ring that persists, once. When the ring has ended, watchRing looks for another
// ring through w and goes on with it.
func (p *Page) watchRing(ctx context.Context, w *waiter, c *cycle) {
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
			c, reported = p.graph.find(w), false
		case !reported:
			p.deadlocked(ctx, c)
			reported = true
		}
	}
}

// deadlocked keeps, counts and logs a cycle.
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
	list := []slog.Attr{
		slog.String("rule", printable(s.waiter.rule.name, maxName)), slog.String("kind", string(s.waiter.rule.kind)),
		slog.Any("holds_rules", rulesOf(s.waiter.carries)),
		p.keyAttr("waits_for", "waits_for_hash", s.waiter.key),
		slog.String("blocked_by", s.by.field),
	}
	if s.waiter.trace.IsValid() {
		list = append(list, slog.String("trace_id", s.waiter.trace.String()))
	}
	return list
}

// rulesOf are the rules of what a caller holds, from the outermost: the first one is mostly
// that of its endpoint. Re-entries are not among them.
func rulesOf(holds []*hold) []string {
	list := []string{}
	for _, h := range slices.Backward(holds) {
		if !h.reentrant {
			list = append(list, printable(h.rule.name, maxName))
		}
	}
	return list
}

// keyAttr is a key in a log: whole where keys may be shown, and else its hash.
func (p *Page) keyAttr(raw, hashed, key string) slog.Attr {
	if p.cfg.rawKeys {
		return slog.String(raw, printable(key, maxName))
	}
	return slog.String(hashed, hashOf(key))
}
