// Package reaper cleans up after unanswered commands.
//
// An unanswered acquire may still be executed, even after a release that was sent on another connection. So the field of
// such an acquire is never used again. The reaper sends a script that releases the lock if the field has it, again and
// again, until the field is certainly gone or no command can bring it back. Packages acquire, counting and holding call
// Abandon and Relinquish for fields. Package core calls Resume when a silent node answers again, and Drain when the client
// is closed. The reaper does not depend on holds or waiters.
//
// Each run of the script is called a question. The reaper guarantees these limits, however many orphans an outage leaves.
// At most 8 questions are under way at the same time, and at most 400 are sent in a second. One question names at most as
// many keys as one script may name. A silent node is not asked. The reaper remembers at most 100,000 orphans, and 256
// settled ones. It does not guarantee that an orphan is cleaned up before its lease expires. Orphans beyond that number,
// and orphans that are left when the client is closed, disappear when their lease expires.
//
// The reaper calls Config.Cleared when a lock was freed. While it holds its mutex, the reaper calls no other code.
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

// Redis answers the questions of the reaper.
type Redis interface {
	// Clears returns the maximum number of keys in one Clear.
	Clears() int
	// Clear frees the locks whose holders are fields under suspicion and returns for each suspicion the
	// fields that were in Redis. It waits for the answer. The implementation limits that time. After an
	// error nothing is known about the locks. If the fate is Answered, Redis rejected the whole script, for
	// example because an ACL forbids one of its keys.
	Clear(ctx context.Context, list []redisstore.Suspicion) ([]redisstore.Finding, wire.Fate, error)
}

// Config is the configuration of a Reaper. All fields are required.
type Config struct {
	Redis Redis
	// Silent reports whether the node of key is silent. A silent node is not asked.
	Silent func(ctx context.Context, key string) bool
	// Cleared is called from a goroutine of the reaper when a lock was freed.
	Cleared func(key string)
	// Spawn runs work in a goroutine of its owner. The owner stops the goroutine by canceling its context
	// and waits for it. Spawn does nothing after the owner was closed.
	Spawn func(work func(ctx context.Context))
}

// Bounds of the reaper.
const (
	maxOrphans = 100_000
	maxAsking  = 8                 // questions at a time
	askEvery   = time.Second / 400 // at most 400 questions in a second
	firstPause = 5 * time.Millisecond
	longestAsk = time.Second // longest pause between two questions about one key
	maxPast    = 256         // settled fields that are remembered
)

// Reaper cleans up the orphans of a client. While there are orphans, it runs one goroutine, and one
// more for each question without an answer. It is safe for concurrent use.
type Reaper struct {
	cfg  Config
	wake chan struct{} // wakes run after a change; capacity 1

	mu      sync.Mutex
	running bool
	keys    map[place]*doubt
	due     dueheap.Heap[*doubt] // the keys that are neither asked about nor parked
	parked  []*doubt             // keys whose nodes were silent
	resumes int                  // how often a node answered again
	orphans int
	fields  map[string]int // number of orphans by field
	past    []string       // the last settled fields that were in Redis
	asking  int            // questions without an answer
	next    time.Time      // when the next question may be sent
	unasked unasked
}

// New returns a reaper without orphans.
func New(cfg Config) *Reaper {
	return &Reaper{cfg: cfg, wake: make(chan struct{}, 1), keys: make(map[place]*doubt), fields: make(map[string]int), unasked: newUnasked()}
}

// Abandon makes the reaper clean up a field that a command has written to all keys, or may still write. See Relinquish
// for a field that no command can write any more. call is the command if it was not answered. It is nil if the command was
// answered, or if only its effect is in doubt. lease is the lease that the command requested. Abandon returns at once and
// does not retain keys.
func (r *Reaper) Abandon(kind *redisstore.Kind, keys []string, field string, call LateAnswer, lease time.Duration) {
	r.add(keys, &orphan{kind: kind, field: field, call: call, until: time.Now().Add(lease + SettleTime)})
}

// Relinquish makes the reaper clean up a field that was in Redis and that no command can bring back,
// so that one answer settles it. It returns at once and does not retain keys.
func (r *Reaper) Relinquish(kind *redisstore.Kind, keys []string, field string, lease time.Duration) {
	r.add(keys, &orphan{kind: kind, field: field, state: seen, until: time.Now().Add(lease)})
}

// IsOrphan reports whether the reaper is cleaning up a field, which then has no holder.
func (r *Reaper) IsOrphan(field string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fields[field] > 0
}

// WasOrphan reports whether a field is among the last 256 that were cleaned up. A waiter that was
// refused because of such a field may ask only after the reaper settled it.
func (r *Reaper) WasOrphan(field string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.past, field)
}

// Resume makes the reaper ask about the keys of silent nodes, because a silent node answers again.
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

// Drain waits until Redis has answered about all present orphans, except orphans about which it
// need not be asked, or until ctx is done. It does not wait for later orphans.
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
	if r.addOrphan(keys, o) {
		r.cfg.Spawn(r.run)
	}
}

// addOrphan adds an orphan and reports whether the caller has to start the goroutine that cleans up.
func (r *Reaper) addOrphan(keys []string, o *orphan) (idle bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.orphans >= maxOrphans {
		return false
	}
	r.orphans++
	r.fields[o.field]++
	o.keys = len(keys)
	if r.unasked.add() {
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

// suspect makes the reaper ask about a key soon. The mutex is held.
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

// run asks until nothing is left or ctx is canceled.
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
			if q := r.buildQuestion(ctx, picked, now); len(q.doubts) > 0 {
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

// pick takes the keys for the next question out of the heap, if a question may be sent now. Otherwise it returns the
// pause before the next check. over means that no key is left and the goroutine ends.
func (r *Reaper) pick(now time.Time) (picked []*doubt, pause time.Duration, over bool) {
	most := r.cfg.Redis.Clears()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch wait := r.next.Sub(now); {
	case len(r.keys) == 0:
		r.running = false
		return nil, 0, true
	case wait > 0:
		return nil, wait, false
	case r.asking >= maxAsking:
		return nil, longestAsk, false
	}
	pause = longestAsk
	for r.due.Len() > 0 && len(picked) < most {
		d := r.due.First()
		pause = d.next.Sub(now)
		if len(picked) > 0 && (d.alone || picked[0].alone || d.kind != picked[0].kind) {
			break
		}
		if pause > 0 && (len(picked) == 0 || pause > d.pause/jitter.Spread) {
			break // otherwise it joins the question about the due keys
		}
		picked = append(picked, r.due.Pop())
	}
	return picked, pause, false
}

// buildQuestion returns a question about the keys that are not settled and whose nodes are not silent. It also checks for
// late answers. No other goroutine does that.
func (r *Reaper) buildQuestion(ctx context.Context, picked []*doubt, now time.Time) (q question) {
	waiting, resumes := r.waiting(picked)
	outcomes, silent := make([]Outcome, len(waiting)), make([]bool, len(picked))
	for i, o := range waiting {
		outcomes[i] = o.call.Late()
	}
	for i, d := range picked {
		silent[i] = r.cfg.Silent(ctx, d.key)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, o := range waiting {
		o.recordOutcome(outcomes[i])
	}
	for i, d := range picked {
		r.settle(d, func(_ int, s suspicion) bool { return s.orphan.settled(now) })
		switch {
		case len(d.orphans) == 0:
			delete(r.keys, d.place)
		case silent[i]:
			r.park(d, resumes, now)
		default:
			q.add(d)
		}
	}
	if len(q.doubts) > 0 {
		r.asking++
		r.next = now.Add(askEvery)
	}
	return q
}

// waiting returns the orphans of some keys whose call has no answer.
func (r *Reaper) waiting(picked []*doubt) (list []*orphan, resumes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range picked {
		for _, s := range d.orphans {
			if s.orphan.call != nil {
				list = append(list, s.orphan)
			}
		}
	}
	return list, r.resumes
}

// park sets a key aside until its node answers again, unless a node answered again after the node was
// found to be silent. The mutex is held.
func (r *Reaper) park(d *doubt, resumes int, now time.Time) {
	d.next = now
	if r.resumes == resumes {
		r.parked = append(r.parked, d)
	} else {
		r.due.Push(d)
	}
}

func (r *Reaper) ask(ctx context.Context, q question) {
	found, fate, err := r.cfg.Redis.Clear(ctx, q.list)
	for _, key := range r.recordResult(q, found, fate, err) {
		r.cfg.Cleared(key)
	}
}

// recordResult records the answer to a question, or that no answer came, and returns the keys that were freed.
func (r *Reaper) recordResult(q question, found []redisstore.Finding, fate wire.Fate, err error) (cleared []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking--
	for i, d := range q.doubts {
		d.pause = min(4*d.pause, longestAsk)
		d.next = time.Now().Add(jitter.Of(d.pause))
		d.alone = err != nil && fate == wire.Answered
		if err == nil && found[i].Err == nil && r.learn(d, q.sizes[i], found[i].Fields) {
			cleared = append(cleared, d.key)
		}
		if len(d.orphans) == 0 {
			delete(r.keys, d.place)
		} else {
			r.due.Push(d)
		}
	}
	r.signal()
	return cleared
}

// learn records which fields were in a key when Redis was asked about the first n of its orphans. The question named
// the last of these, and Redis has removed the named fields that it found. A missing field settles its orphan only if no
// command can write that field any more. learn reports whether Redis removed a field. The mutex is held.
func (r *Reaper) learn(d *doubt, n int, fields []string) (cleared bool) {
	for i := range d.orphans[:n] {
		if d.orphans[i].answered {
			r.recordAsked(&d.orphans[i])
		}
	}
	now := time.Now()
	var there *orphan
	r.settle(d, func(i int, s suspicion) bool {
		o := s.orphan
		switch {
		case i >= n:
			return false
		case !slices.Contains(fields, o.field) && !slices.Contains(fields, redisstore.Nothing+o.field):
			return s.seen || now.After(o.until)
		}
		o.become(seen) // the command was executed for all its keys
		if i < n-d.maxNames() {
			there = o
			return false
		}
		cleared = true
		return true
	})
	if there != nil {
		d.nameFirst(there, now)
	}
	return cleared
}

// settle drops the orphans of a key for which gone returns true. The mutex is held.
func (r *Reaper) settle(d *doubt, gone func(i int, s suspicion) bool) {
	left := d.orphans[:0]
	for i, s := range d.orphans {
		if !gone(i, s) {
			left = append(left, s)
			continue
		}
		r.recordAsked(&s)
		if s.orphan.keys--; s.orphan.keys == 0 {
			r.orphans--
			r.forget(s.orphan)
		}
	}
	clear(d.orphans[len(left):])
	d.orphans = left
}

// forget removes the field of an orphan that is settled in all keys. If the field was in Redis, forget adds it to the
// last settled fields. The mutex is held.
func (r *Reaper) forget(o *orphan) {
	if r.fields[o.field]--; r.fields[o.field] == 0 {
		delete(r.fields, o.field)
	}
	if o.state != seen {
		return
	}
	if len(r.past) == maxPast {
		r.past = slices.Delete(r.past, 0, 1)
	}
	r.past = append(r.past, o.field)
}

// recordAsked records that Redis was asked about an orphan in one key, or need not be asked. The mutex is held.
func (r *Reaper) recordAsked(s *suspicion) {
	if s.asked || s.orphan.unasked == 0 {
		return
	}
	s.asked = true
	if s.orphan.unasked--; s.orphan.unasked == 0 {
		r.unasked.remove()
	}
}
