package lockz

import (
	"slices"
	"sync"
	"time"
)

// searched is how many waiters one search for a cycle looks at, at most.
const searched = 256

// graph is who waits while holding something: the only waiters that can close a cycle. Its
// edges lead from a waiter to the holds that keep it waiting, and from a hold to the waiters
// whose context carries it.
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

// cycle is a deadlock: the last hold is carried by the first waiter.
type cycle struct {
	found time.Time
	steps []step
}

// lasts reports whether everybody in it still waits for the same hold.
func (c *cycle) lasts() bool {
	return !slices.ContainsFunc(c.steps, func(s step) bool { return s.waiter.done.Load() || s.by.done.Load() })
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
	steps := g.search(w)
	if steps == nil {
		return nil
	}
	return &cycle{found: time.Now(), steps: steps}
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
// first. Most searches end at once: who is in the way does not wait.
func (g *graph) search(w *waiter) []step {
	visits := []visit{{waiter: w, from: -1}}
	seen := map[*waiter]bool{}
	for i := 0; i < len(visits) && len(visits) < searched; i++ {
		for _, h := range g.blockers(visits[i].waiter) {
			if slices.Contains(w.carries, h) {
				return trail(visits, i, h)
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

// blockers are the holds of this process that keep w waiting: of its key, or, where several
// keys are wanted or held together, of the holder that was in the way.
func (g *graph) blockers(w *waiter) []*hold {
	if !w.exclusive() {
		return nil
	}
	var list []*hold
	if w.keys == 1 {
		list = g.table.ofKey(w.key)
	}
	for _, h := range g.table.ofHolder(w.blockedBy, w.keys > 1) {
		if !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	behind := g.table.behindWriter(w)
	return slices.DeleteFunc(list, func(h *hold) bool { return !behind && !w.waitsFor(h) || h.lost.Load() })
}
