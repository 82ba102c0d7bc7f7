package lockz

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core"
)

// searched is how many waiters one search for a cycle looks at, at most.
const searched = 256

// graph has the waiters that hold something: no other waiter can close a cycle. Its edges lead
// from a waiter to the holds that keep it waiting, and from a hold to the waiters whose context
// carries it.
type graph struct {
	table *table

	mu      sync.Mutex
	carried map[*hold][]*waiter
}

// step is one edge of a cycle: a waiter, the hold that it waits for, and so on to the next
// step, whose waiter carries that hold.
type step struct {
	waiter *waiter
	by     *hold
}

// cycle is a ring of waiters: the last hold is carried by the first waiter.
type cycle struct {
	found time.Time
	steps []step
}

// lasts reports whether every waiter in it still waits for the same hold.
func (c *cycle) lasts() bool {
	return !slices.ContainsFunc(c.steps, func(s step) bool { return s.waiter.done.Load() || s.by.done.Load() || s.by.lost() })
}

func newGraph(t *table) *graph { return &graph{table: t, carried: make(map[*hold][]*waiter)} }

// join adds a waiter that holds something, and gives the cycle that it closes, if any. Two
// that join at the same time do so one after the other: the second one sees the first.
func (g *graph) join(w *waiter) *cycle {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range w.carries {
		g.carried[h] = append(g.carried[h], w)
	}
	return g.search(w)
}

// find gives a cycle that a waiter is in, if any.
func (g *graph) find(w *waiter) *cycle {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.search(w)
}

// leave takes it out.
func (g *graph) leave(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range w.carries {
		left := slices.DeleteFunc(g.carried[h], func(other *waiter) bool { return other == w })
		if len(left) > 0 {
			g.carried[h] = left
		} else {
			delete(g.carried, h)
		}
	}
}

// visit is a waiter on the way of a search, and how it was reached.
type visit struct {
	waiter *waiter
	from   int // index of the visit before; -1 for the first
	by     *hold
}

// search finds the shortest way from w over what keeps it waiting back to itself, breadth
// first. Most searches end at once, because the holder does not wait. The mutex is held.
func (g *graph) search(w *waiter) *cycle {
	visits := []visit{{waiter: w, from: -1}}
	seen := map[*waiter]bool{}
	for i := 0; i < len(visits) && len(visits) < searched; i++ {
		for _, h := range g.blockers(visits[i].waiter) {
			if slices.Contains(w.carries, h) {
				return &cycle{found: time.Now(), steps: trail(visits, i, h)}
			}
			for _, next := range g.carried[h] {
				if !seen[next] {
					seen[next] = true
					visits = append(visits, visit{waiter: next, from: i, by: h})
				}
			}
		}
	}
	return nil
}

// trail is the way to the last visit, and from there over h back to its beginning.
func trail(visits []visit, last int, h *hold) []step {
	var steps []step
	for i := last; i >= 0; i = visits[i].from {
		steps = append(steps, step{waiter: visits[i].waiter, by: h})
		h = visits[i].by
	}
	slices.Reverse(steps)
	return steps
}

// blockers returns the holds of this process that keep w waiting, of every key that it wants. A hold
// that w carries keeps it waiting only if another client has it: the own client enters the lock
// again.
func (g *graph) blockers(w *waiter) []*hold {
	if !w.exclusive() {
		return nil
	}
	behind := g.table.behindWriter(w)
	var list []*hold
	for i := range w.keys {
		for _, h := range g.table.ofKey(w.name(i)) {
			switch {
			case h.lost() || !behind && !w.waitsFor(h) || !g.table.realms.same(w.client, h.client):
			case w.client == h.client && slices.Contains(w.carries, h), slices.Contains(list, h):
			default:
				list = append(list, h)
			}
		}
	}
	return list
}

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
	p.cycles.add("", c)
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
	return slog.String(hashed, core.KeyHash(key))
}
