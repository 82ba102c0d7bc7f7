package lockz

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// eventsKept is how many entries of each kind a history keeps.
const eventsKept = 200

// history keeps the last entries of each kind, so that the many of one kind do not push out the
// few of another: a lock that was lost is still there after a thousand calls that ran unlocked.
// Kinds are words of a fixed list. The zero value is empty.
type history[T any] struct {
	mu    sync.Mutex
	total int64
	kinds map[string][]numbered[T]
}

// numbered is an entry with its number among all entries, from 1.
type numbered[T any] struct {
	number int64
	value  T
}

func (h *history[T]) add(kind string, value T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kinds == nil {
		h.kinds = make(map[string][]numbered[T])
	}
	h.total++
	kept := h.kinds[kind]
	h.kinds[kind] = append(kept[max(len(kept)+1-eventsKept, 0):], numbered[T]{h.total, value})
}

// latest gives the entries of all kinds, the last one first, and how many there have been in all.
func (h *history[T]) latest() (list []numbered[T], total int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kept := range h.kinds {
		list = append(list, kept...)
	}
	slices.SortFunc(list, func(a, b numbered[T]) int { return cmp.Compare(b.number, a.number) })
	return list, h.total
}

// event is something that an operator may ask about afterwards: a lock that was not acquired, was
// lost, left at a shutdown or not released, or a handler without its lock.
type event struct {
	at     time.Time
	what   string
	rule   rule
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

// rule is the rule and the kind of a lock.
type rule struct {
	name string
	kind core.Kind
}

// ruleNone names the rule of an acquisition without a label, as package telemetry does.
const ruleNone = "none"
