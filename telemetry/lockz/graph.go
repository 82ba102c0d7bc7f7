package lockz

import (
	"slices"
	"sync"
	"time"
)

// maxVisits limits the number of waiters that one search for a cycle visits.
const maxVisits = 256

// graph contains the waiters whose context carries a hold, because only they can be part of a cycle. Its
// edges lead from a waiter to the holds that block it, and from a hold to the waiters whose context carries
// it.
type graph struct {
	table *table

	mu      sync.Mutex
	carried map[*hold][]*waiter
}

// step is one edge of a cycle: a waiter and the hold that blocks it. The waiter of the next step
// carries that hold.
type step struct {
	waiter *waiter
	by     *hold
}

// cycle is a ring of waiters. The first waiter carries the hold of the last step.
type cycle struct {
	found time.Time
	steps []step
}

// lasts reports whether every waiter of the ring still waits for the same hold.
func (c *cycle) lasts() bool {
	return !slices.ContainsFunc(c.steps, func(s step) bool { return s.waiter.done.Load() || s.by.done.Load() || s.by.lost() })
}

func newGraph(t *table) *graph { return &graph{table: t, carried: make(map[*hold][]*waiter)} }

// join adds a waiter and returns the cycle that it closes, or nil. Of two waiters that join at the same
// time, the second one sees the first.
func (g *graph) join(w *waiter) *cycle {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range w.carries {
		g.carried[h] = append(g.carried[h], w)
	}
	return g.search(w)
}

// find returns a cycle that contains a waiter, or nil.
func (g *graph) find(w *waiter) *cycle {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.search(w)
}

// leave removes a waiter.
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

// visit is a waiter that a search reached.
type visit struct {
	waiter *waiter
	from   int   // index of the previous visit; -1 for the first
	by     *hold // the hold that led here
}

// search looks for the shortest cycle through w, breadth first. Most searches stop at once because
// the holder does not wait. The caller holds the mutex.
func (g *graph) search(w *waiter) *cycle {
	visits := []visit{{waiter: w, from: -1}}
	seen := map[*waiter]bool{}
	for i := 0; i < len(visits) && len(visits) < maxVisits; i++ {
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

// trail returns the steps from the first visit to the last one, which h leads back to the first.
func trail(visits []visit, last int, h *hold) []step {
	var steps []step
	for i := last; i >= 0; i = visits[i].from {
		steps = append(steps, step{waiter: visits[i].waiter, by: h})
		h = visits[i].by
	}
	slices.Reverse(steps)
	return steps
}

// blockers returns the holds of this process that block w, for each of its keys. A hold that w itself carries
// blocks w only if the hold belongs to another client, because within one client the caller re-enters the lock.
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
