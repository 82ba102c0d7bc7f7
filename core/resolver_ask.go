package core

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// orphan is a field that nobody holds a lock with, but that may be in Redis.
//
//	expected -> seen     it was in Redis, so that "not there" says that it has gone
//	either   -> settled  it is in no key any more, and cannot come back
type orphan struct {
	kind    *redisstore.Kind
	field   string
	call    *redisstore.Call[redisstore.Grant] // without an answer so far; nil when none is awaited
	seen    bool
	refused bool      // the call has changed nothing
	until   time.Time // after that nothing can land any more
	keys    int       // in how many it may still be
	unasked int       // keys for which Close still waits
}

// settled looks for the late answer of the call. That settles everything if it is a
// refusal; if it is a grant, the field was in Redis and cannot come back. It is not relied
// on: on a connection that hangs it may never come.
func (o *orphan) settled() bool {
	if o.call == nil {
		return o.refused
	}
	grant, fate, err := o.call.Late()
	if redisstore.Pending(err) {
		return false
	}
	o.call = nil
	if err != nil {
		o.refused = fate != redisstore.Unknown
		return o.refused
	}
	o.seen, o.refused = grant.Refusal == nil, grant.Refusal != nil
	return o.refused
}

// doubt is a key with the orphans that may be in it, oldest first.
type doubt struct {
	key     string
	orphans []suspicion
	next    time.Time // when it is asked about
	pause   time.Duration
	index   int // in the heap, -1 when not there

	// alone says that a question which named this key was refused as a whole, as by an ACL
	// that forbids one of its keys: it does not travel with others until it is answered.
	alone bool
}

// suspicion is one orphan in one key.
type suspicion struct {
	orphan *orphan
	asked  bool // Close does not wait for it any more

	// As it was when the last question was sent.
	seen, answered bool
}

// named is how many orphans of a key a question names, so that Redis frees the lock at
// once; of the others it tells whether one is there.
const named = 16

// question is one script about several keys.
type question struct {
	doubts []*doubt
	list   []redisstore.Suspicion
	sizes  []int // how many orphans each key has; later ones are not asked about
}

func (q *question) add(d *doubt) {
	newest := d.orphans[max(0, len(d.orphans)-named):]
	s := redisstore.Suspicion{Kind: newest[0].orphan.kind, Key: d.key, Fields: make([]string, len(newest))}
	for i := range newest {
		s.Fields[i] = newest[i].orphan.field
	}
	for i := range d.orphans {
		s := &d.orphans[i]
		s.seen, s.answered = s.orphan.seen, s.orphan.call == nil
	}
	q.doubts, q.list, q.sizes = append(q.doubts, d), append(q.list, s), append(q.sizes, len(d.orphans))
}

// ask sends a question and takes in the answer.
func (r *resolver) ask(ctx context.Context, q question) {
	now := time.Now()
	call := r.client.store.Clear(now, q.list)
	found, _, err := call.Wait(ctx, r.client.callLimit(now))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking--
	for i, d := range q.doubts {
		d.pause = min(4*d.pause, longestAsk)
		d.next = time.Now().Add(jittered(d.pause))
		d.alone = err != nil && redisstore.Answer(err)
		if err == nil && found[i].Err == nil {
			r.learn(d, q.sizes[i], found[i].Fields)
		}
		if len(d.orphans) == 0 {
			delete(r.keys, d.key)
		} else {
			heap.Push(&r.due, d)
		}
	}
	r.signal()
}

// learn takes in which fields were in a key when it was asked about the first n of its
// orphans: the last of these were named, and are cleared. "Not there" is no answer before
// the time in which a command may still land is over. The mutex is held.
func (r *resolver) learn(d *doubt, n int, fields []string) {
	for i := range d.orphans[:n] {
		if d.orphans[i].answered {
			r.asked(&d.orphans[i])
		}
	}
	now, cleared := time.Now(), false
	var there *orphan
	r.settle(d, func(i int, s suspicion) bool {
		o := s.orphan
		switch {
		case i >= n:
			return false
		case !slices.Contains(fields, o.field):
			return s.seen || now.After(o.until)
		}
		o.seen = true // the command was executed, for all its keys
		if i < n-named {
			there = o
			return false
		}
		cleared = true
		return true
	})
	if there != nil {
		d.name(there, now)
	}
	if cleared {
		r.client.lines.kick(d.key)
	}
}

// name has the next question, at once, name an orphan that is there.
func (d *doubt) name(o *orphan, now time.Time) {
	at := slices.IndexFunc(d.orphans, func(s suspicion) bool { return s.orphan == o })
	last := len(d.orphans) - 1
	d.orphans[at], d.orphans[last] = d.orphans[last], d.orphans[at]
	d.next = now
}

// doubtHeap orders keys by when they are asked about.
type doubtHeap []*doubt

func (h doubtHeap) Len() int           { return len(h) }
func (h doubtHeap) Less(i, j int) bool { return h[i].next.Before(h[j].next) }
func (h doubtHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push adds a key; it is for container/heap.
func (h *doubtHeap) Push(x any) {
	d := x.(*doubt) //nolint:forcetypeassert,errcheck // only doubts are pushed
	d.index = len(*h)
	*h = append(*h, d)
}

// Pop takes the last one; it is for container/heap.
func (h *doubtHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	d.index = -1
	return d
}
