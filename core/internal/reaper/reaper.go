// Package reaper clears up what got no answer.
//
// An acquire without an answer may still land, even after a release that was sent on another
// connection. So its field is never used again, and the reaper keeps asking "release if mine"
// until it is gone for certain, or nothing can land any more. The wiring calls Abandon and
// Relinquish for fields, Resume when a node that was silent answers again, and Drain when the
// client closes.
//
// Guaranteed, however many orphans an outage has left, is that at most 8 questions are on
// their way at a time, and 400 are sent in a second; that one question is about as many keys
// as one script may name; that nothing is asked of a node that is silent; and that at most
// 100,000 orphans are remembered, and 256 that are settled. Not guaranteed is that an orphan is cleared up before its
// lease ends: what is beyond that number, or left when the client closes, ends with it.
//
// One call runs upward: Cleared, when a lock was freed. The mutex guards memory only; nothing
// is called under it.
package reaper

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/dueheap"
	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Redis is what the reaper asks.
type Redis interface {
	// Clears is how many keys one Clear may be about.
	Clears() int
	// Clear frees the locks that are held by fields under suspicion, and says of each
	// suspicion which fields were there. It waits for the answer, with an end of its own. On
	// an error nothing is known; with the fate Answered, Redis has rejected the script as a
	// whole, as an ACL does that forbids one of its keys.
	Clear(ctx context.Context, list []redisstore.Suspicion) ([]redisstore.Finding, wire.Fate, error)
}

// Config is what a Reaper needs. All of it is required.
type Config struct {
	Redis Redis
	// Silent reports whether the node of key is known not to answer: it is not asked then.
	Silent func(ctx context.Context, key string) bool
	// Cleared is notified that a lock was freed, from a goroutine of the reaper.
	Cleared func(key string)
	// Spawn runs work in a goroutine of its owner, who ends it by its context and waits for
	// it. It does nothing when the owner has closed.
	Spawn func(work func(ctx context.Context))
}

// Bounds of the reaper.
const (
	maxOrphans = 100_000
	maxAsking  = 8                       // questions at a time
	askEvery   = 2500 * time.Microsecond // at most 400 questions in a second
	firstPause = 5 * time.Millisecond
	longestAsk = time.Second // between two questions about one key
	maxPast    = 256         // fields that are remembered when they are settled
)

// SettleTime is how long after its lease a command may still be on its way: in a proxy, a
// kernel buffer, or a server that was stopped.
const SettleTime = 2 * time.Minute

// Reaper clears up the orphans of a client. It is one goroutine while there are any, and a
// few that wait for an answer. It is safe for concurrent use.
type Reaper struct {
	cfg  Config
	wake chan struct{} // something has changed; capacity 1

	mu      sync.Mutex
	running bool
	keys    map[place]*doubt
	due     dueheap.Heap[*doubt] // of those that are neither asked about nor parked
	parked  []*doubt             // until their node answers again
	resumes int                  // how often that was
	orphans int
	fields  map[string]int // in how many orphans each is
	past    []string       // the last fields that were in Redis and are settled
	asking  int            // questions without an answer
	next    time.Time      // not before then is the next question
	unasked unasked
}

// New makes a reaper that has nothing to do.
func New(cfg Config) *Reaper {
	return &Reaper{cfg: cfg, wake: make(chan struct{}, 1), keys: make(map[place]*doubt), fields: make(map[string]int), unasked: newUnasked()}
}

// Abandon has a field cleared up that may be in all keys of one command, now or later. call
// is that command if it was not answered, nil if it was, or if only its effect is in doubt.
// lease is what it asked for. It returns at once, and keys stay the caller's.
func (r *Reaper) Abandon(kind *redisstore.Kind, keys []string, field string, call LateAnswer, lease time.Duration) {
	r.add(keys, &orphan{kind: kind, field: field, call: call, until: time.Now().Add(lease + SettleTime)})
}

// Relinquish has a field cleared up that was in Redis, and that no command can bring back:
// who asks again is answered for good. It returns at once, and keys stay the caller's.
func (r *Reaper) Relinquish(kind *redisstore.Kind, keys []string, field string, lease time.Duration) {
	r.add(keys, &orphan{kind: kind, field: field, state: seen, until: time.Now().Add(lease)})
}

// Orphaned reports whether a field is being cleared up: nobody holds a lock with it.
func (r *Reaper) Orphaned(field string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fields[field] > 0
}

// WasOrphaned reports whether a field is one of the last 256 that were cleared up. Who was refused
// because of it may hear of that later than the reaper of the end of it.
func (r *Reaper) WasOrphaned(field string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.past, field)
}

// Resume has the keys asked about whose node was silent: one answers again.
func (r *Reaper) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.parked {
		r.due.Push(d)
	}
	r.parked = nil
	r.resumes++
	r.signal()
}

// Drain waits until Redis was asked with an answer about all that was left to the reaper, or
// need not be, or until ctx ends. What is left to it later is not waited for.
func (r *Reaper) Drain(ctx context.Context) {
	r.mu.Lock()
	none := r.unasked.close()
	r.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}

func (r *Reaper) add(keys []string, o *orphan) {
	if r.remember(keys, o) {
		r.cfg.Spawn(r.run)
	}
}

// remember takes an orphan in, and reports whether nobody is running who clears it up.
func (r *Reaper) remember(keys []string, o *orphan) (idle bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.orphans >= maxOrphans {
		return false
	}
	r.orphans++
	r.fields[o.field]++
	o.keys = len(keys)
	if r.unasked.enter() {
		o.unasked = len(keys)
	}
	soon := time.Now().Add(jitter.Of(firstPause))
	for _, key := range keys {
		r.suspect(place{o.kind, key}, o, soon)
	}
	r.signal()
	idle = !r.running
	r.running = true
	return idle
}

// suspect has a key asked about, soon. The mutex is held.
func (r *Reaper) suspect(in place, o *orphan, soon time.Time) {
	d := r.keys[in]
	if d == nil {
		d = &doubt{place: in, next: soon}
		r.keys[in] = d
		r.due.Push(d)
	}
	d.orphans = append(d.orphans, suspicion{orphan: o})
	d.pause = firstPause
	if d.Queued() && soon.Before(d.next) {
		d.next = soon
		r.due.Fix(d)
	}
}

func (r *Reaper) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run asks until nothing is left, or ctx ends.
func (r *Reaper) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := time.Now()
		picked, pause, over := r.pick(now)
		switch {
		case over:
			return
		case len(picked) > 0:
			if q := r.consider(ctx, picked, now); len(q.doubts) > 0 {
				r.cfg.Spawn(func(ctx context.Context) { r.ask(ctx, q) })
			}
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
