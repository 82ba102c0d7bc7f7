package reaper

import "github.com/interlock-go/interlock/core/internal/redisstore"

// These constants limit the number of orphans of a key that a question names. If a named orphan has the
// lock, the script frees the lock. The answer shows whether one of the other orphans is in the key. A
// queue in Redis may contain many orphans at the same time.
const (
	maxNamed        = 16
	maxNamedInQueue = 250
)

// maxNames returns the largest number of orphans of this key that a question names.
func (d *doubt) maxNames() int {
	if d.kind != nil && d.kind.Waits == redisstore.InRedis {
		return maxNamedInQueue
	}
	return maxNamed
}

// question is one script about several keys of a kind.
type question struct {
	doubts []*doubt
	list   []redisstore.Suspicion
	sizes  []int // number of orphans of each key; the question does not cover later ones
}

func (q *question) add(d *doubt) {
	newest := d.orphans[max(0, len(d.orphans)-d.maxNames()):]
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
