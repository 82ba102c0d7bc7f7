package lockz

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
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

// ring keeps the last entries of a kind.
type ring[T any] struct {
	mu    sync.Mutex
	kept  []T
	next  int
	limit int
	total int64
}

func newRing[T any](limit int) *ring[T] { return &ring[T]{limit: limit} }

func (r *ring[T]) add(v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	if len(r.kept) < r.limit {
		r.kept = append(r.kept, v)
		return
	}
	r.kept[r.next] = v
	r.next = (r.next + 1) % r.limit
}

// latest gives the entries, the last one first, and how many there have been in all.
func (r *ring[T]) latest() (list []T, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list = make([]T, 0, len(r.kept))
	for i := range r.kept {
		at := (r.next - 1 - i + 2*len(r.kept)) % len(r.kept)
		list = append(list, r.kept[at])
	}
	return list, r.total
}

// event is something that somebody may ask about afterwards: a lock that was not acquired, was
// lost, left at a shutdown or not released, or a handler without its lock.
type event struct {
	number int64
	at     time.Time
	what   string
	rule   string
	kind   core.Kind
	key    string
	holder string // whose hold it was, or who was in the way
	lasted time.Duration
	err    error
	trace  trace.TraceID
}

// The incidents: what should not happen. A refusal has its outcome instead.
const (
	whatLost          = "lost"
	whatLeft          = "left"
	whatLeaked        = "leaked"
	whatReleaseFailed = "release failed"
	whatRenewalFailed = "renewal failed"
	whatUnlocked      = "ran unlocked"
	whatReleased      = "force released"
)
