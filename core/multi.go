package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// takeMany gets an ownership for every key of a MultiLock, or none. Keys that ctx owns
// are entered again after the others were acquired.
func (c *Client) takeMany(ctx context.Context, keys []string, req *request, report *AcquireResult) ([]*ownership, error) {
	owners := make([]*ownership, len(keys))
	var wanted []string
	for i, key := range keys {
		var err error
		if owners[i], _, err = c.ownedAs(ctx, key, req); err != nil {
			return nil, err
		}
		if owners[i] == nil {
			wanted = append(wanted, key)
		}
	}
	m := newMulti(c, wanted, req, report)
	if err := m.take(ctx); err != nil {
		return nil, err
	}
	var entered []*ownership
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

// multi is the acquisition of several keys that are not owned yet.
//
// It waits with empty hands: in the queue of the key that is in the way. When its turn
// comes there, it takes all keys by one script, or, across slots, that key and then the
// others, for which it does not wait. If another key is in the way then, it moves to the
// queue of that one, to the place that its age gives it.
//
// With every key in motion they are rarely free at the same moment. So who was passed
// over too often takes the keys one after the other, first the one that was in the way
// most often, and holds what it has while it waits for the next one; but only for its
// patience, and then it gives all back. After that it waits with empty hands for at least
// three times as long, so that what it cannot use is held for a quarter of the time at
// most:
//
//	empty hands ──passed over──> holding ──all──> acquired
//	    ^                           │
//	    └──────patience over────────┘
//
// Nobody waits for ever with a key in hand, so nobody is deadlocked, whatever the order
// in which others take them. Nobody's patience is that of the others, so that two do not
// get into each other's way for ever.
type multi struct {
	client *Client
	req    *request
	report *AcquireResult
	keys   []string     // sorted
	got    []*ownership // by key, nil for one that is not held

	first    int       // the key that is in the way
	inTheWay []int     // how often a key was, with an extra weight for one that was missed while holding
	began    time.Time // of the present wait with empty hands
	passed   int       // how often others were first since then, across slots
	pause    time.Time // until when nothing is held
	last     *attempt  // that was refused, nil if none was
	admitted bool      // the limits of waiters have let it in before
	behind   behind    // of all attempts together
}

func newMulti(c *Client, keys []string, req *request, report *AcquireResult) *multi {
	return &multi{
		client: c, req: req, report: report, keys: keys, began: report.Start,
		got: make([]*ownership, len(keys)), inTheWay: make([]int, len(keys)),
	}
}

// When a waiter has been passed over: by so many turns of others, or for so long.
const (
	maxPassed  = 16
	maxPassing = time.Second
)

// The patience of one who holds keys: a quarter of what it has waited so far, within
// these bounds. It begins anew when the key that it waits for passes from one holder to
// the next, because then whoever has that does not wait for what is held here; at most
// up to four times as long.
const (
	leastPatience = 50 * time.Millisecond
	mostPatience  = time.Second
	patiencePart  = 4
)

// errPassedOver ends a wait with empty hands.
var errPassedOver = errors.New("others were first too often")

// take gets all keys or none.
func (m *multi) take(ctx context.Context) error {
	if len(m.keys) == 0 {
		return nil
	}
	for _, key := range m.keys {
		if err := m.client.queues.Check(key, m.req.kind.Family); err != nil {
			return notQueued(err, key, m.req.kind)
		}
	}
	m.first = m.client.queues.Busiest(m.keys)
	for next := m.way(); ; {
		err := next(ctx)
		if err == nil {
			return nil
		}
		m.giveBack(ctx)
		switch {
		case errors.Is(err, errPassedOver):
			next = m.takeHolding
		case errors.Is(err, errGaveUp):
			next = m.way()
		default:
			return err
		}
	}
}

// way returns how to take all keys while none of them is held.
func (m *multi) way() func(ctx context.Context) error {
	if len(m.keys) > 1 && m.req.kind.TakesSeveral() && m.client.oneScript(m.keys) {
		return m.takeTogether
	}
	return m.takeEmptyHanded
}

// takeTogether takes all keys by one script. If the endpoint refuses the script, way returns
// another way from then on.
func (m *multi) takeTogether(ctx context.Context) error {
	a := m.attempt(ctx, m.first)
	a.several.keys = slices.Clone(m.keys)
	a.waitFor(m.first)
	a.several.passedOver = func(passed int) bool {
		m.missed(slices.Index(m.keys, a.key), 1)
		return m.passedOver(passed, a.now)
	}
	err := m.run(ctx, a)
	if wire.Apart(err) {
		return errGaveUp
	}
	return err
}

// takeEmptyHanded waits for the key that is in the way, and takes the others if they are
// free.
func (m *multi) takeEmptyHanded(ctx context.Context) error {
	missing, err := m.takeOneByOne(ctx, m.first, nil)
	if !errors.Is(err, errGaveUp) {
		return err
	}
	m.missed(missing, 1)
	if m.passed++; m.passedOver(m.passed, time.Now()) {
		return errPassedOver
	}
	return err
}

// takeHolding waits for every key with those before it in hand.
func (m *multi) takeHolding(ctx context.Context) error {
	var since time.Time
	first := slices.Index(m.inTheWay, slices.Max(m.inTheWay))
	missing, err := m.takeOneByOne(ctx, first, func(now time.Time) (one, most time.Duration) {
		since = now
		return m.patience(now)
	})
	if errors.Is(err, errGaveUp) {
		// Whoever has it may be waiting for what was held here: it comes first next time.
		m.missed(missing, maxPassed)
		m.passed, m.began = 0, time.Now()
		m.pause = m.began.Add((patiencePart - 1) * m.began.Sub(since))
	}
	return err
}

func (m *multi) missed(index, weight int) {
	m.first = index
	m.inTheWay[index] += weight
}

// passedOver reports whether others were first too often, or for too long.
func (m *multi) passedOver(passed int, now time.Time) bool {
	long := now.Sub(m.began) >= maxPassing
	return (passed >= maxPassed || passed > 0 && long) && !now.Before(m.pause)
}

// patience is how long keys are held for one that stays with its holder, and how long in
// all. A fixed lease outlasts it.
func (m *multi) patience(now time.Time) (one, most time.Duration) {
	one = min(max(now.Sub(m.report.Start)/patiencePart, leastPatience), mostPatience)
	most = patiencePart * one
	if !m.req.watchdog {
		most = min(most, m.req.lease/2)
		one = min(one, most)
	}
	return one - rand.N(one/2+1), most
}

// takeOneByOne takes a key, and then the others. howLong gives the patience when the first
// one is held; without it there is none, and each of the others gets one attempt. It gives
// the key that was missing.
func (m *multi) takeOneByOne(ctx context.Context, first int, howLong func(now time.Time) (one, most time.Duration)) (missing int, err error) {
	var since time.Time // when the first key was acquired
	var one, most time.Duration
	order := m.order(first)
	for n, index := range order {
		a := m.attempt(ctx, index)
		if n > 0 {
			a.wait.patience = patience{one, since.Add(one), since.Add(most)}
		}
		if err := m.run(ctx, a); err != nil {
			return index, err
		}
		if n == 0 {
			since = a.now
			if howLong != nil {
				one, most = howLong(since)
			}
		}
	}
	return first, m.extend(ctx, order[:len(order)-1])
}

// order begins with a key.
func (m *multi) order(first int) []int {
	order := []int{first}
	for i := range m.keys {
		if i != first {
			order = append(order, i)
		}
	}
	return order
}

// attempt prepares to wait for one key, which may be in the way of others.
func (m *multi) attempt(ctx context.Context, index int) *attempt {
	a := m.client.newAttempt(ctx, m.keys[index], m.req, m.report, time.Now())
	a.wait.admitted, a.sends.behind = m.admitted, m.behind
	return &a
}

// run is one attempt. What it gets is renewed from now on.
func (m *multi) run(ctx context.Context, a *attempt) error {
	if m.last != nil && m.req.wait > 0 && a.over() {
		return m.last.busy(nil)
	}
	o, err := a.run(ctx)
	m.admitted, m.behind = a.wait.admitted, a.sends.behind
	if a.refusal.Refusal != nil {
		m.last = a
	}
	switch {
	case err == nil:
	case a.timeUp() && m.last != nil && errors.Is(err, ErrUnavailable):
		return m.last.busy(nil) // Redis answered a moment ago
	default:
		return err
	}
	for _, o := range append(a.several.beside, o) {
		o.watch(m.req.watchdog, a.now)
		m.got[slices.Index(m.keys, o.lease.Key)] = o
	}
	return nil
}

// merge puts the new owners into the gaps between the entered ones.
func (m *multi) merge(owners []*ownership) []*ownership {
	next := 0
	for i := range owners {
		if owners[i] == nil {
			owners[i] = m.got[next]
			next++
		}
	}
	return owners
}
