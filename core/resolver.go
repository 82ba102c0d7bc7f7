package core

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// An acquire without an answer may still land, even after a release that was sent
// on another connection. So its field is never used again, and the resolver keeps
// asking "release if mine" until it is gone for certain.

// settleTime is how long after its lease a command may still be on its way: in a
// proxy, a kernel buffer, or a server that was stopped.
const settleTime = 2 * time.Minute

// abandon leaves a field to the resolver, in all keys of one command. call is that
// command if it was not answered, nil if it was, or if only its effect is in doubt.
func (c *Client) abandon(kind *redisstore.Kind, keys []string, field string, call *redisstore.Call[redisstore.Grant], lease time.Duration) {
	if call != nil {
		call.Settle()
	}
	c.resolver.add(keys, &orphan{kind: kind, field: field, call: call, until: time.Now().Add(lease + settleTime)})
}

// relinquish leaves the release of a holder to the resolver. Its field was in Redis
// and no command can bring it back: who asks again is answered for good.
func (c *Client) relinquish(kind *redisstore.Kind, keys []string, field string, lease time.Duration) {
	c.resolver.add(keys, &orphan{kind: kind, field: field, seen: true, until: time.Now().Add(lease)})
}

// resolver clears up the orphans of a client, however many an outage has left: one
// question is about many keys, and about all orphans of each of them. It is one goroutine
// while there are any, and a few that wait for an answer.
type resolver struct {
	client *Client
	wake   chan struct{} // something has changed; capacity 1

	mu      sync.Mutex
	running bool
	keys    map[string]*doubt
	due     doubtHeap // of those that are neither asked about nor parked
	parked  []*doubt  // until their node answers again
	orphans int
	asking  int       // questions without an answer
	next    time.Time // not before then is the next question
}

// Bounds of the resolver. Beyond maxOrphans what is abandoned is left to its lease.
const (
	maxOrphans = 100_000
	maxAsking  = 8                       // questions at a time
	askEvery   = 2500 * time.Microsecond // at most 400 questions in a second
	longestAsk = time.Second             // between two questions about one key
)

func newResolver(c *Client) *resolver {
	return &resolver{client: c, wake: make(chan struct{}, 1), keys: make(map[string]*doubt)}
}

// add has an orphan cleared up. Close waits until Redis was asked once with an answer, or
// does not answer.
func (r *resolver) add(keys []string, o *orphan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.orphans >= maxOrphans {
		return
	}
	r.orphans++
	o.keys = len(keys)
	if r.client.unasked.enter() == nil {
		o.unasked = len(keys)
	}
	soon := time.Now().Add(jittered(firstPause))
	for _, key := range keys {
		r.suspect(key, o, soon)
	}
	if !r.running {
		r.running = true
		r.client.spawn(r.run)
	}
	r.signal()
}

// suspect has a key asked about, soon. The mutex is held.
func (r *resolver) suspect(key string, o *orphan, soon time.Time) {
	d := r.keys[key]
	if d == nil {
		d = &doubt{key: key, next: soon, index: -1}
		r.keys[key] = d
		heap.Push(&r.due, d)
	}
	d.orphans = append(d.orphans, suspicion{orphan: o})
	d.pause = firstPause
	if d.index >= 0 && soon.Before(d.next) {
		d.next = soon
		heap.Fix(&r.due, d.index)
	}
}

func (r *resolver) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// look asks about what was parked: a node answers again.
func (r *resolver) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.parked {
		heap.Push(&r.due, d)
	}
	r.parked = nil
	r.signal()
}

// run asks until nothing is left, or ctx ends.
func (r *resolver) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		q, pause, over := r.plan(ctx, time.Now())
		if over {
			return
		}
		if len(q.doubts) > 0 {
			r.client.spawn(func(ctx context.Context) { r.ask(ctx, q) })
			continue
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-r.wake:
		}
	}
}

// plan gives the next question, if it is time for one, and else when to look again.
func (r *resolver) plan(ctx context.Context, now time.Time) (q question, pause time.Duration, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if wait := r.next.Sub(now); wait > 0 {
		return q, wait, false
	}
	if r.asking >= maxAsking {
		return q, longestAsk, false
	}
	for most := r.client.store.Clears(); len(r.due) > 0 && len(q.doubts) < most; {
		d := r.due[0]
		pause = d.next.Sub(now)
		if len(q.doubts) > 0 && (d.alone || q.doubts[0].alone) {
			break
		}
		if pause > 0 && (len(q.doubts) == 0 || pause > d.pause/4) {
			break // else it travels with those that are due
		}
		r.consider(ctx, &q, heap.Pop(&r.due).(*doubt), now) //nolint:forcetypeassert,errcheck // only doubts are there
	}
	switch {
	case len(q.doubts) > 0:
		r.asking++
		r.next = now.Add(askEvery)
	case len(r.keys) == 0:
		r.running = false
		return q, 0, true
	case len(r.due) == 0:
		pause = longestAsk
	}
	return q, max(pause, 0), false
}

// consider puts a key into the question, unless it is settled or its node is silent. The
// mutex is held.
func (r *resolver) consider(ctx context.Context, q *question, d *doubt, now time.Time) {
	r.settle(d, func(_ int, s suspicion) bool {
		return s.orphan.settled() || now.After(s.orphan.until.Add(settleTime)) // no answer will come, and no key is left
	})
	switch {
	case len(d.orphans) == 0:
		delete(r.keys, d.key)
	case r.client.failFast(ctx, d.key) != nil:
		d.next = now
		r.parked = append(r.parked, d)
	default:
		q.add(d)
	}
}

// settle drops the orphans of a key for which gone is true. The mutex is held.
func (r *resolver) settle(d *doubt, gone func(i int, s suspicion) bool) {
	left := d.orphans[:0]
	for i, s := range d.orphans {
		if !gone(i, s) {
			left = append(left, s)
			continue
		}
		r.asked(&s)
		if s.orphan.keys--; s.orphan.keys == 0 {
			r.orphans--
		}
	}
	clear(d.orphans[len(left):])
	d.orphans = left
}

// asked notes that Redis was asked about an orphan in one key, or need not be. The mutex
// is held.
func (r *resolver) asked(s *suspicion) {
	if s.asked || s.orphan.unasked == 0 {
		return
	}
	s.asked = true
	if s.orphan.unasked--; s.orphan.unasked == 0 {
		r.client.unasked.exit()
	}
}
