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

// takeSeveral acquires all keys of a MultiLock or none. First it acquires the keys that ctx does not carry. Then it
// re-enters the keys that ctx carries.
func (in *Acquirer) takeSeveral(ctx context.Context, w *Wish, report *Report) (got []*holding.Holder, _ error) {
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
	var entered []*holding.Holder
	defer func() {
		if got != nil {
			return
		}
		m.giveBack(ctx) // after an error, or after a hook that ended the goroutine
		for _, o := range entered {
			o.Undo(w.Renewed)
		}
	}()
	if err := m.take(ctx); err != nil {
		return nil, err
	}
	for _, o := range holders {
		if o == nil {
			continue
		}
		if err := in.reenter(ctx, o, w, report); err != nil {
			return nil, err
		}
		entered = append(entered, o)
	}
	report.Reentered, report.Acquired = len(entered) == len(w.Keys), time.Now()
	m.mergeInto(holders)
	report.Field, report.Token = holders[0].Field(), holders[0].Token()
	return holders, nil
}

// multi acquires several keys that ctx does not carry.
//
// A multi waits in the queue of one taken key, and holds none of the keys. When its turn comes, it takes all keys by
// one script. If the keys are in several slots, it takes the key of the queue and then the others, without waiting for
// them. If another key is taken, the multi moves to the queue of that key. The arrival time of the multi decides its
// place in the queue.
//
// If all keys are in use, they are rarely free at the same moment. So a multi that was passed over too often takes the
// keys one after the other. It starts with the key that was taken most often. While it waits for the next key, it holds
// the keys that it has, but only for its patience. Then it gives all keys back and waits without a key for at least three
// times as long. So it holds unused keys for at most a quarter of the time:
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

	first     int       // index of the key for which the multi waits first
	taken     []int     // how often each key was taken; a key that was missing while others were held counts more
	waitStart time.Time // start of the present wait without a key
	passed    int       // how often other callers were first since waitStart; only for keys in several slots
	pause     time.Time // the multi holds no key until then
	last      *attempt  // the last attempt that was refused; nil: none was
	ghost     ghost     // shared by all attempts
}

func newMulti(in *Acquirer, keys []string, w *Wish, report *Report) *multi {
	return &multi{
		in: in, wish: w, report: report, keys: keys, waitStart: report.Start,
		got: make([]*holding.Holder, len(keys)), taken: make([]int, len(keys)),
	}
}

// A waiter counts as passed over after maxPassed turns of other callers, or after one such turn and maxPassing.
const (
	maxPassed  = 16
	maxPassing = time.Second
)

// The patience of a waiter that holds keys is a quarter of the time that it has waited so far, within these bounds. The
// patience starts again when the next key gets another holder: the key changes hands, so its holders do not wait for
// this waiter. In all, the patience is at most four times as long.
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

// takeTogether takes all keys by one script. If the endpoint refuses a script with several keys, takeTogether returns
// errGaveUp, and chooseTake returns takeApart from then on.
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

// takeHolding takes the keys one after the other. While it waits for a key, it holds the keys that it has taken before.
func (m *multi) takeHolding(ctx context.Context) error {
	var since time.Time
	first := slices.Index(m.taken, slices.Max(m.taken))
	missing, err := m.takeOneByOne(ctx, first, func(now time.Time) (one, most time.Duration) {
		since = now
		return m.patience(now)
	})
	if errors.Is(err, errGaveUp) {
		// The holder of the missing key may wait for a key that this multi held. So the multi starts with the missing
		// key the next time.
		m.recordMiss(missing, maxPassed)
		m.passed, m.waitStart = 0, time.Now()
		m.pause = m.waitStart.Add((patiencePart - 1) * m.waitStart.Sub(since))
	}
	return err
}

// recordMiss records that the key with an index was taken, and makes the multi wait for that key first.
func (m *multi) recordMiss(index, weight int) {
	m.first = index
	m.taken[index] += weight
}

// passedOver reports whether others were first too often, or for too long.
func (m *multi) passedOver(passed int, now time.Time) bool {
	long := now.Sub(m.waitStart) >= maxPassing
	return (passed >= maxPassed || passed > 0 && long) && !now.Before(m.pause)
}

// patience returns two limits of the time for which the multi holds keys while it waits: one while the next key has the
// same holder, and most in all. most is at most half of a fixed lease.
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

// run runs one attempt and puts the leases of the keys that it gets under watch.
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
		return m.last.busyError(nil) // Redis refused the last attempt
	default:
		return err
	}
	for _, o := range append(a.group.others, o) {
		o.Watch(m.wish.Renewed, a.now)
		m.got[slices.Index(m.keys, o.Key())] = o
	}
	return nil
}

// extend renews the whole lease of the keys that the multi acquired before the last key. If one of them was lost in
// between, extend returns errGaveUp, and the wait begins again.
func (m *multi) extend(ctx context.Context, acquired []int) error {
	if len(acquired) == 0 {
		return nil
	}
	holders := make([]*holding.Holder, len(acquired))
	for i, index := range acquired {
		holders[i] = m.got[index]
	}
	a := m.in.attempt(m.keys[acquired[0]], m.wish, m.report, time.Now())
	a.limit() // so that cutShort knows it
	err := failure.Join(holding.Extend(ctx, holders, m.wish.Lease, a.span()))
	a.now = time.Now()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return a.busyError(failure.Ended(ctx))
	case errors.Is(err, failure.Unavailable) && a.cutShort():
		return a.busyError(nil) // Redis has just given the last key
	case errors.Is(err, failure.Unavailable):
		return err
	case a.timedOut():
		return a.busyError(failure.Mention(err))
	default:
		return errGaveUp
	}
}

// giveBack releases the keys that the multi has taken. If Redis answers, they are released on return. Otherwise giveBack
// continues in the background after the time limit of one command (at least grace), or when ctx is done.
func (m *multi) giveBack(ctx context.Context) {
	got := slices.DeleteFunc(slices.Clone(m.got), func(o *holding.Holder) bool { return o == nil })
	clear(m.got)
	if len(got) == 0 {
		return
	}
	a := m.in.attempt(m.keys[m.first], m.wish, m.report, time.Now())
	holding.GiveBack(ctx, got, a.limit().Sub(a.now), grace)
}

// mergeInto replaces the nil elements of holders by the holders that the multi has acquired.
func (m *multi) mergeInto(holders []*holding.Holder) {
	next := 0
	for i := range holders {
		if holders[i] == nil {
			holders[i] = m.got[next]
			next++
		}
	}
}
