package acquire

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/holding"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// takeSeveral takes all keys of a MultiLock or none. It re-enters the keys that ctx carries after it has acquired the
// others.
func (in *Acquirer) takeSeveral(ctx context.Context, w *Wish, report *Report) ([]*holding.Holder, error) {
	holders := make([]*holding.Holder, len(w.Keys))
	var wanted []string
	for i, key := range w.Keys {
		var err error
		if holders[i], _, err = in.FindCarried(ctx, key, w); err != nil {
			return nil, err
		}
		if holders[i] == nil {
			wanted = append(wanted, key)
		}
	}
	m := newMulti(in, wanted, w, report)
	if err := m.take(ctx); err != nil {
		return nil, err
	}
	var entered []*holding.Holder
	for _, o := range holders {
		if o == nil {
			continue
		}
		if err := in.reenter(ctx, o, w, report); err != nil {
			m.giveBack(ctx)
			for _, o := range entered {
				o.Undo(w.Renewed)
			}
			return nil, err
		}
		entered = append(entered, o)
	}
	report.Reentered, report.Acquired = len(entered) == len(w.Keys), time.Now()
	m.mergeInto(holders)
	report.Field, report.Token = holders[0].Field(), holders[0].Token()
	return holders, nil
}

// multi takes several keys that ctx does not carry.
//
// It waits in the queue of a taken key and holds none of the keys. When its turn comes there, it takes all keys by one
// script. Across slots it takes that key and then the others, without waiting for them. If another key is taken then, it
// moves to the queue of that key, to the place that its age gives it.
//
// While every key is in use, all of them are rarely free at the same moment. So a multi that was passed over too often
// takes the keys one after the other, starting with the key that was taken most often. It holds the keys that it has
// while it waits for the next one, but only for its patience. Then it gives all keys back and waits without holding a
// key for at least three times as long, so that it holds unused keys for at most a quarter of the time:
//
//	empty-handed ──passed over──▶ holding ──all──▶ acquired
//	    ▲                            │
//	    └──────patience ended────────┘
//
// No multi waits forever while it holds a key, so multis do not deadlock, in whatever order other callers take the
// keys. The patience is random, so that two multis do not block each other again and again.
type multi struct {
	in     *Acquirer
	wish   *Wish
	report *Report
	keys   []string          // sorted
	got    []*holding.Holder // one per key; nil for a key that is not held

	first     int       // index of the taken key, where it waits first
	taken     []int     // how often each key was taken; a key that was missing while others were held counts more
	waitStart time.Time // start of the present wait without a key
	passed    int       // how often others were first since then, across slots
	pause     time.Time // until then it holds no key
	last      *attempt  // the last attempt that was refused; nil: none was
	ghost     ghost     // shared by all attempts
}

func newMulti(in *Acquirer, keys []string, w *Wish, report *Report) *multi {
	return &multi{
		in: in, wish: w, report: report, keys: keys, waitStart: report.Start,
		got: make([]*holding.Holder, len(keys)), taken: make([]int, len(keys)),
	}
}

// A waiter counts as passed over after this many turns of others, or after this time.
const (
	maxPassed  = 16
	maxPassing = time.Second
)

// The patience of a waiter that holds keys is a quarter of the time that it has waited so far, within these bounds. It
// starts again when the next key passes from one holder to another, because the new holder does not wait for a key that
// is held here. In all, it lasts at most four times as long.
const (
	leastPatience = 50 * time.Millisecond
	mostPatience  = time.Second
	patiencePart  = 4
)

// take takes all keys or none.
func (m *multi) take(ctx context.Context) error {
	if len(m.keys) == 0 {
		return nil
	}
	for _, key := range m.keys {
		if err := m.in.Queues.CheckKind(key, m.wish.Kind.Family); err != nil {
			return NotQueued(err, key, m.wish.Kind)
		}
	}
	m.first = m.in.Queues.FirstInUse(m.keys)
	for next := m.chooseTake(); ; {
		err := next(ctx)
		if err == nil {
			return nil
		}
		m.giveBack(ctx)
		switch {
		case errors.Is(err, errPassedOver):
			next = m.takeHolding
		case errors.Is(err, errGaveUp):
			next = m.chooseTake()
		default:
			return err
		}
	}
}

// chooseTake returns the function that takes all keys while none of them is held.
func (m *multi) chooseTake() func(ctx context.Context) error {
	if len(m.keys) > 1 && m.wish.Kind.TakesSeveral() && m.in.OneScript(m.keys) {
		return m.takeTogether
	}
	return m.takeApart
}

// takeTogether takes all keys by one script. If the endpoint refuses a script with several keys, chooseTake
// returns takeApart from then on.
func (m *multi) takeTogether(ctx context.Context) error {
	a := m.attempt(m.first)
	a.group.keys = slices.Clone(m.keys)
	a.waitFor(m.first)
	a.group.passedOver = func(passed int) bool {
		m.recordMiss(slices.Index(m.keys, a.key), 1)
		return m.passedOver(passed, a.now)
	}
	err := m.run(ctx, a)
	if wire.Apart(err) {
		return errGaveUp
	}
	return err
}

// takeApart waits for the taken key and then takes the others if they are free.
func (m *multi) takeApart(ctx context.Context) error {
	missing, err := m.takeOneByOne(ctx, m.first, nil)
	if !errors.Is(err, errGaveUp) {
		return err
	}
	m.recordMiss(missing, 1)
	if m.passed++; m.passedOver(m.passed, time.Now()) {
		return errPassedOver
	}
	return err
}

// takeHolding waits for every key while it holds those before it.
func (m *multi) takeHolding(ctx context.Context) error {
	var since time.Time
	first := slices.Index(m.taken, slices.Max(m.taken))
	missing, err := m.takeOneByOne(ctx, first, func(now time.Time) (one, most time.Duration) {
		since = now
		return m.patience(now)
	})
	if errors.Is(err, errGaveUp) {
		// The holder of the missing key may wait for a key that was held here: it comes first next time.
		m.recordMiss(missing, maxPassed)
		m.passed, m.waitStart = 0, time.Now()
		m.pause = m.waitStart.Add((patiencePart - 1) * m.waitStart.Sub(since))
	}
	return err
}

func (m *multi) recordMiss(index, weight int) {
	m.first = index
	m.taken[index] += weight
}

// passedOver reports whether others were first too often, or for too long.
func (m *multi) passedOver(passed int, now time.Time) bool {
	long := now.Sub(m.waitStart) >= maxPassing
	return (passed >= maxPassed || passed > 0 && long) && !now.Before(m.pause)
}

// patience returns how long the multi holds keys while it waits for one holder of the next key, and how long in all. A
// fixed lease lasts longer than that.
func (m *multi) patience(now time.Time) (one, most time.Duration) {
	one = min(max(now.Sub(m.report.Start)/patiencePart, leastPatience), mostPatience)
	most = patiencePart * one
	if !m.wish.Renewed {
		most = min(most, m.wish.Lease/2)
		one = min(one, most)
	}
	return one - rand.N(one/2+1), most
}

// takeOneByOne takes a key and then the others. Once it holds the first key, it asks howLong for the patience. If
// howLong is nil, it makes one attempt at each of the others. It returns the index of the key that it did not get.
func (m *multi) takeOneByOne(ctx context.Context, first int, howLong func(now time.Time) (one, most time.Duration)) (missing int, err error) {
	var since time.Time // when the first key was acquired
	var one, most time.Duration
	order := m.order(first)
	for n, index := range order {
		a := m.attempt(index)
		if n > 0 {
			a.patience = patience{one, since.Add(one), since.Add(most)}
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

// order returns the indexes of all keys, first in front.
func (m *multi) order(first int) []int {
	order := []int{first}
	for i := range m.keys {
		if i != first {
			order = append(order, i)
		}
	}
	return order
}

func (m *multi) attempt(index int) *attempt {
	a := m.in.attempt(m.keys[index], m.wish, m.report, time.Now())
	a.ghost = m.ghost
	return &a
}

// run runs one attempt. The watchdog watches the keys that it gets from then on.
func (m *multi) run(ctx context.Context, a *attempt) error {
	if m.last != nil && m.wish.Wait > 0 && a.timedOut() {
		return m.last.busyError(nil)
	}
	o, err := a.run(ctx)
	m.ghost = a.ghost
	if a.refusal.Refusal != nil {
		m.last = a
	}
	switch {
	case err == nil:
	case a.cutShort() && m.last != nil && errors.Is(err, failure.Unavailable):
		return m.last.busyError(nil) // Redis answered a moment ago
	default:
		return err
	}
	for _, o := range append(a.group.others, o) {
		o.Watch(m.wish.Renewed, a.now)
		m.got[slices.Index(m.keys, o.Key())] = o
	}
	return nil
}

// extend renews the whole lease of the keys that the multi acquired before it waited for the last one. If one of them
// was lost in between, the wait begins again.
func (m *multi) extend(ctx context.Context, acquired []int) error {
	if len(acquired) == 0 {
		return nil
	}
	holders := make([]*holding.Holder, len(acquired))
	for i, index := range acquired {
		holders[i] = m.got[index]
	}
	a := m.in.attempt(m.keys[acquired[0]], m.wish, m.report, time.Now())
	err := failure.Join(holding.Extend(ctx, holders, m.wish.Lease, a.span()))
	a.now = time.Now()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return a.busyError(failure.Ended(ctx))
	case errors.Is(err, failure.Unavailable):
		return err
	case a.timedOut():
		return a.busyError(failure.Mention(err))
	default:
		return errGaveUp
	}
}

// giveBack frees the keys that the multi has taken. If Redis answers, they are free on return. If it does not, the
// caller is delayed no longer than the backend timeout, or grace beyond the wait time or ctx.
func (m *multi) giveBack(ctx context.Context) {
	got := slices.DeleteFunc(slices.Clone(m.got), func(o *holding.Holder) bool { return o == nil })
	clear(m.got)
	if len(got) == 0 {
		return
	}
	a := m.in.attempt(m.keys[m.first], m.wish, m.report, time.Now())
	holding.GiveBack(ctx, got, a.limit().Sub(a.now), grace)
}

// mergeInto puts the new holders into the gaps between the entered ones.
func (m *multi) mergeInto(holders []*holding.Holder) {
	next := 0
	for i := range holders {
		if holders[i] == nil {
			holders[i] = m.got[next]
			next++
		}
	}
}
