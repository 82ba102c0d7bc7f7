package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// takeMany gets an owner for every key of a MultiLock, or none. Keys that ctx owns
// are entered again after the others were had.
func (c *Client) takeMany(ctx context.Context, keys []string, req *request, report *AcquireResult) ([]*owner, error) {
	owners := make([]*owner, len(keys))
	var wanted []string
	for i, key := range keys {
		if owners[i] = c.owned(ctx, key); owners[i] == nil {
			wanted = append(wanted, key)
		}
	}
	m := newMulti(c, wanted, req, report)
	if err := m.take(ctx); err != nil {
		return nil, err
	}
	var entered []*owner
	for _, o := range owners {
		if o == nil {
			continue
		}
		if err := c.reenter(ctx, o, req, report); err != nil {
			m.giveBack(ctx)
			for _, o := range entered {
				c.undoEntry(o, req.watchdog)
			}
			return nil, err
		}
		entered = append(entered, o)
	}
	if len(entered) == len(keys) {
		report.Outcome = OutcomeReentered
	}
	report.acquired = time.Now()
	return m.merge(owners), nil
}

// multi is the acquisition of several keys that are not owned yet, in one of two ways:
//
//	together    It holds nothing while it waits. It stands in the line of the key that is
//	            in the way, and asks for all keys by one script when its turn comes there.
//	            If another key is in the way then, it moves to that line, to the place
//	            that its age gives it, and lets those behind it go first in the old one.
//	one by one  It takes the key first that was in the way most often, then the others,
//	            and holds what it has while it waits for the next, but only for its
//	            patience. Then it gives all back.
//
// Together is the way where one script can take all keys. One by one is the way across
// slots, and of one who was passed over too often: with every key in motion they are
// never free at the same moment. After one by one it waits together again, for at least
// three times its patience, so that it holds keys that it cannot use for a quarter of the
// time at most. Nobody holds a key for ever while waiting, so nobody is deadlocked,
// whatever the order in which others take them; and two who give up after different
// times do not get into each other's way for ever.
type multi struct {
	client *Client
	req    *request
	report *AcquireResult
	keys   []string // sorted
	got    []*owner // by key, nil for one that is not had

	together bool  // one script can take all
	inTheWay []int // how often, by key

	first  int       // in whose line it begins to wait together
	began  time.Time // of the present wait together
	pause  time.Time // until when it does not wait one by one
	last   *attempt  // that was refused, nil if none was
	queued bool      // the limits of waiters have let it in
}

func newMulti(c *Client, keys []string, req *request, report *AcquireResult) *multi {
	return &multi{
		client: c, req: req, report: report, keys: keys,
		got: make([]*owner, len(keys)), inTheWay: make([]int, len(keys)),
	}
}

// When a waiter has been passed over: after so many turns of others at the keys that it
// waits for, or so long.
const (
	maxPassed  = 16
	maxPassing = time.Second
)

// The patience of a waiter one by one: a quarter of what it has waited so far, within
// these bounds. It begins anew when the key that it waits for passes from one holder to
// the next: then whoever has that does not wait for what is held here.
const (
	leastPatience = 50 * time.Millisecond
	mostPatience  = time.Second
	patiencePart  = 4
)

// What ends one way of waiting, but not the wait.
var (
	errPassedOver = errors.New("others were first too often")
	errGivenBack  = errors.New("what was held was given back")
)

// take gets all keys or none.
func (m *multi) take(ctx context.Context) error {
	if len(m.keys) == 0 {
		return nil
	}
	m.together = len(m.keys) > 1 && m.client.oneScript(m.keys)
	m.first = m.client.lines.busiest(m.keys)
	for {
		err := errPassedOver
		if m.together {
			err = m.takeTogether(ctx)
		}
		if errors.Is(err, errPassedOver) {
			err = m.takeOneByOne(ctx)
		}
		if err == nil {
			return nil
		}
		m.giveBack(ctx)
		if !errors.Is(err, errGivenBack) {
			return err
		}
	}
}

// attempt prepares to wait for one key, which may be in the way of others.
func (m *multi) attempt(ctx context.Context, index int) *attempt {
	a := m.client.newAttempt(ctx, m.keys[index], m.req, m.report, time.Now())
	a.admitted, m.queued = m.queued, true
	return &a
}

// run is one attempt. What it gets is renewed from now on.
func (m *multi) run(ctx context.Context, a *attempt) error {
	if m.last != nil && m.req.wait > 0 && a.over() {
		return m.last.busy(nil)
	}
	o, err := a.run(ctx)
	if a.refusal != nil {
		m.last = a
	}
	switch {
	case err == nil:
	case a.timeUp() && m.last != nil && errors.Is(err, ErrUnavailable):
		return m.last.busy(nil) // Redis answered a moment ago
	default:
		return err
	}
	for _, o := range append(a.beside, o) {
		m.client.watchdog.add(o, m.req.watchdog, a.now)
		m.got[slices.Index(m.keys, o.key)] = o
	}
	return nil
}

// takeTogether takes all keys by one script, and holds nothing until then.
func (m *multi) takeTogether(ctx context.Context) error {
	a := m.attempt(ctx, m.first)
	m.began = a.now
	a.keys = slices.Clone(m.keys)
	a.waitFor(m.first)
	a.passedOver = func(passed int) bool {
		m.first = slices.Index(m.keys, a.key)
		m.inTheWay[m.first]++
		return m.passedOver(passed, a.now)
	}
	return m.run(ctx, a)
}

// passedOver says whether others were first too often since another key than the one
// before was in the way.
func (m *multi) passedOver(passed int, now time.Time) bool {
	long := now.Sub(m.began) >= maxPassing
	return (passed >= maxPassed || passed > 0 && long) && !now.Before(m.pause)
}

// takeOneByOne takes the keys one after the other, and holds what it has no longer than
// its patience.
func (m *multi) takeOneByOne(ctx context.Context) error {
	var since time.Time // when the first key was had
	var patience, most time.Duration
	for n, index := range m.order() {
		a := m.attempt(ctx, index)
		if n > 0 {
			a.patience, a.giveUp, a.lastGiveUp = patience, since.Add(patience), since.Add(most)
		}
		err := m.run(ctx, a)
		switch {
		case errors.Is(err, errGaveUp):
			m.missed(index)
			m.pause = a.now.Add((patiencePart - 1) * a.now.Sub(since))
			return errGivenBack
		case err != nil:
			return err
		case n == 0:
			since = a.now
			patience, most = m.patience(since, index)
		}
	}
	return m.extend(ctx)
}

// missed notes the key for which it has held others in vain: whoever has it may be
// waiting for these, and next time it is taken first.
func (m *multi) missed(index int) {
	m.first = index
	m.inTheWay[index] = slices.Max(m.inTheWay) + maxPassed
}

// order is that of taking one by one.
func (m *multi) order() []int {
	first := m.first
	for i, n := range m.inTheWay {
		if n > m.inTheWay[first] {
			first = i
		}
	}
	order := []int{first}
	for i := range m.keys {
		if i != first {
			order = append(order, i)
		}
	}
	return order
}

// patience is how long keys are held for one that stays with its holder, and at most for
// one that passes on. It is not the same for two who began at the same time. Across slots
// everybody takes one by one: who has begun with the first key is in nobody's way for
// ever, and the others give way to it. A fixed lease outlasts it.
func (m *multi) patience(now time.Time, begin int) (one, most time.Duration) {
	one = min(max(now.Sub(m.report.Start)/patiencePart, leastPatience), mostPatience)
	switch {
	case m.together:
		most = patiencePart * one
	case begin == 0:
		most = patiencePart * patiencePart * one
	default:
		one /= patiencePart
		most = one
	}
	if !m.req.watchdog {
		most = min(most, m.req.lease/2)
	}
	one = min(one, most)
	return one - rand.N(one/2+1), most
}

// merge puts the new owners into the gaps between the entered ones.
func (m *multi) merge(owners []*owner) []*owner {
	next := 0
	for i := range owners {
		if owners[i] == nil {
			owners[i] = m.got[next]
			next++
		}
	}
	return owners
}
