package reaper

import "github.com/interlock-go/interlock/core/internal/redisstore"

// named is how many orphans of a key a question names, so that Redis frees the lock at once. The answer
// shows whether one of the others is there. In a queue in Redis there may be many at once.
const (
	named        = 16
	namedInQueue = 250
)

// names returns how many orphans of the place a question names.
func (d *doubt) names() int {
	if d.kind != nil && d.kind.Waits == redisstore.InRedis {
		return namedInQueue
	}
	return named
}

// question is one script about several keys of a kind.
type question struct {
	doubts []*doubt
	list   []redisstore.Suspicion
	sizes  []int // how many orphans each key had; it does not ask about later ones
}

func (q *question) add(d *doubt) {
	newest := d.orphans[max(0, len(d.orphans)-d.names()):]
	s := redisstore.Suspicion{Kind: d.kind, Key: d.key, Fields: make([]string, len(newest))}
	for i := range newest {
		s.Fields[i] = newest[i].orphan.field
	}
	for i := range d.orphans {
		s := &d.orphans[i]
		s.seen, s.answered = s.orphan.state == seen, s.orphan.call == nil
	}
	q.doubts, q.list, q.sizes = append(q.doubts, d), append(q.list, s), append(q.sizes, len(d.orphans))
}
