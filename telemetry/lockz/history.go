package lockz

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// eventsKept is the number of entries of each sort that a history keeps.
const eventsKept = 200

// history keeps the last entries of each sort. Many entries of one sort do not displace the few entries of
// another. For example, a lost lock is still listed after a thousand calls that ran unlocked. Sorts are words
// from a fixed list. The zero value is empty.
type history[T any] struct {
	mu    sync.Mutex
	total int64
	kept  map[string][]numberedEntry[T]
}

// numberedEntry is an entry with its number among all entries. Numbers start at 1.
type numberedEntry[T any] struct {
	number int64
	value  T
}

func (h *history[T]) add(sort string, value T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept == nil {
		h.kept = make(map[string][]numberedEntry[T])
	}
	h.total++
	kept := h.kept[sort]
	h.kept[sort] = append(kept[max(len(kept)+1-eventsKept, 0):], numberedEntry[T]{h.total, value})
}

// latest returns the entries of all sorts, the last one first, and the number of entries ever
// added.
func (h *history[T]) latest() (list []numberedEntry[T], total int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kept := range h.kept {
		list = append(list, kept...)
	}
	slices.SortFunc(list, func(a, b numberedEntry[T]) int { return cmp.Compare(b.number, a.number) })
	return list, h.total
}

// count returns the number of entries ever added.
func (h *history[T]) count() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}

// event is a refusal or an incident, which an operator may ask about later.
type event struct {
	at     time.Time
	what   string // the outcome of a refusal, or one of the incidents below
	rule   rule
	key    string
	holder string        // field of the hold, or of the holder that refused the lock
	lasted time.Duration // the time for which the caller waited or the hold was held
	err    error
	trace  trace.TraceID
}

// The incidents.
const (
	whatLost          = "lost"
	whatHeldTooLong   = "held too long"
	whatLeft          = "left"
	whatLeaked        = "leaked"
	whatReleaseFailed = "release failed"
	whatRenewalFailed = "renewal failed"
	whatUnlocked      = "ran unlocked"
	whatReleased      = "force released"
)
