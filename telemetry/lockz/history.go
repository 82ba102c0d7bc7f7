package lockz

import (
	"slices"
	"sync"
	"sync/atomic"
)

// maxKinds bounds how many kinds of events a history tells apart. There are fewer words.
const maxKinds = 32

// history keeps the last events of each kind, so that the many of one kind do not push out the
// few of another: a lock that was lost is still there after a thousand calls that ran unlocked.
type history struct {
	limit int // of each kind

	number atomic.Int64 // of the last one

	mu    sync.Mutex
	kinds map[string]*ring[event]
}

func newHistory(limit int) *history {
	return &history{limit: limit, kinds: make(map[string]*ring[event])}
}

func (h *history) add(e event) {
	e.number = h.number.Add(1)
	h.of(e.what).add(e)
}

// of is the ring of a kind. What is beyond maxKinds shares one.
func (h *history) of(what string) *ring[event] {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.kinds[what]; !known && len(h.kinds) >= maxKinds {
		what = ""
	}
	r := h.kinds[what]
	if r == nil {
		r = newRing[event](h.limit)
		h.kinds[what] = r
	}
	return r
}

// latest gives the events of all kinds, the last one first, and how many there have been in all.
func (h *history) latest() (list []event, total int64) {
	for _, r := range h.rings() {
		some, n := r.latest()
		list, total = append(list, some...), total+n
	}
	slices.SortStableFunc(list, func(a, b event) int { return b.at.Compare(a.at) })
	return list, total
}

func (h *history) rings() (list []*ring[event]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.kinds {
		list = append(list, r)
	}
	return list
}
