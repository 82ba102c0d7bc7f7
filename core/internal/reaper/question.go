package reaper

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// named is how many orphans of a key a question names, so that Redis frees the lock at once;
// of the others it says whether one is there. In a queue in Redis there may be many at once.
const (
	named        = 16
	namedInQueue = 250
)

// names is how many orphans of the place a question names.
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
	sizes  []int // how many orphans each key has; later ones are not asked about
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

// pick takes the keys that travel in the next question, if it is time for one, and else says
// when to look again.
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
			break // else it travels with those that are due
		}
		picked = append(picked, r.due.Pop())
	}
	return picked, pause, false
}

// consider makes a question of the keys that are not settled by now, and whose nodes are not
// silent. It is the one goroutine that looks for late answers.
func (r *Reaper) consider(ctx context.Context, picked []*doubt, now time.Time) (q question) {
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
		o.learn(outcomes[i])
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

// waiting are the orphans of some keys that have a call without an answer.
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

// park leaves a key alone until its node answers again, unless one does since it was found to
// be silent. The mutex is held.
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
	for _, key := range r.answered(q, found, fate, err) {
		r.cfg.Cleared(key)
	}
}

// answered takes in an answer, or that there was none, and gives the keys that were freed.
func (r *Reaper) answered(q question, found []redisstore.Finding, fate wire.Fate, err error) (cleared []string) {
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

// learn takes in which fields were in a key when it was asked about the first n of its
// orphans: the last of these were named, and are cleared. "Not there" is no answer before the
// time in which a command may still land is over. It reports whether one was cleared. The
// mutex is held.
func (r *Reaper) learn(d *doubt, n int, fields []string) (cleared bool) {
	for i := range d.orphans[:n] {
		if d.orphans[i].answered {
			r.asked(&d.orphans[i])
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
		o.become(seen) // the command was executed, for all its keys
		if i < n-d.names() {
			there = o
			return false
		}
		cleared = true
		return true
	})
	if there != nil {
		d.name(there, now)
	}
	return cleared
}

// settle drops the orphans of a key for which gone is true. The mutex is held.
func (r *Reaper) settle(d *doubt, gone func(i int, s suspicion) bool) {
	left := d.orphans[:0]
	for i, s := range d.orphans {
		if !gone(i, s) {
			left = append(left, s)
			continue
		}
		r.asked(&s)
		if s.orphan.keys--; s.orphan.keys == 0 {
			r.orphans--
			r.drop(s.orphan)
		}
	}
	clear(d.orphans[len(left):])
	d.orphans = left
}

// drop forgets the field of an orphan that is settled everywhere, one that was in Redis a little later.
// The mutex is held.
func (r *Reaper) drop(o *orphan) {
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

// asked notes that Redis was asked about an orphan in one key, or need not be. The mutex is
// held.
func (r *Reaper) asked(s *suspicion) {
	if s.asked || s.orphan.unasked == 0 {
		return
	}
	s.asked = true
	if s.orphan.unasked--; s.orphan.unasked == 0 {
		r.unasked.exit()
	}
}
