package queue

import (
	"maps"
	"time"
)

// maxRecent is for how many keys of a shard without a queue the turns are kept.
const maxRecent = 64

// recent are the turns of keys whose queue has ended: the next caller may come at once.
type recent map[string]turns

func (r *recent) keep(key string, t turns, now time.Time) {
	kept, worth := t.kept()
	if !worth {
		return
	}
	if *r == nil {
		*r = make(recent)
	}
	if len(*r) >= maxRecent {
		maps.DeleteFunc(*r, func(_ string, t turns) bool { return t.stale(now) })
	}
	if len(*r) < maxRecent {
		(*r)[key] = kept
	}
}

// take gives the turns of key to a new queue.
func (r *recent) take(key string) turns {
	t, ok := (*r)[key]
	if ok {
		delete(*r, key)
	}
	return t
}
