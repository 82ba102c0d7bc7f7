package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// together is how long several keys are tried for by one script. After that, or
// across slots, they are taken one after the other in sorted order, which waits
// properly and cannot deadlock.
const (
	together     = 50 * time.Millisecond
	togetherStep = 8 * time.Millisecond
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
	m := &multi{client: c, req: req, report: report, notOwned: wanted}
	if err := m.take(ctx); err != nil {
		return nil, err
	}
	var entered []*owner
	for _, o := range owners {
		if o == nil {
			continue
		}
		if err := c.reenter(ctx, o, req); err != nil {
			m.rollBack(ctx)
			for _, o := range entered {
				c.undoEntry(ctx, o, req.watchdog)
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
type multi struct {
	client   *Client
	req      *request
	report   *AcquireResult
	notOwned []string
	got      []*owner
	refused  *attempt // the last one together, nil if none was made
}

// take gets all keys or none.
func (m *multi) take(ctx context.Context) error {
	if len(m.notOwned) == 0 {
		return nil
	}
	if len(m.notOwned) > 1 && m.client.store.SameSlot(m.notOwned) {
		done, err := m.takeTogether(ctx)
		if done || err != nil {
			return err
		}
	}
	if err := m.takeOneByOne(ctx); err != nil {
		m.rollBack(ctx)
		return err
	}
	return nil
}

// takeTogether tries the script until it succeeds, or waiting in line is better.
func (m *multi) takeTogether(ctx context.Context) (done bool, err error) {
	single := m.client.newAttempt(ctx, m.notOwned[0], m.req, m.report)
	a := &single
	if err := m.client.gate.check(ctx, a.key); err != nil {
		return false, err
	}
	once := !m.req.forever && m.req.wait == 0
	for give := a.now.Add(together); ; {
		if done, err := m.tryTogether(ctx, a); done || err != nil {
			return done, err
		}
		switch {
		case once:
			return false, a.busy(nil)
		case a.now.After(give), m.client.lines.others(a.key):
			m.refused = a
			return false, nil
		}
		if err := m.client.sleepOpen(ctx, a.pause(togetherStep)); err != nil {
			return false, a.stopped(ctx, err)
		}
		if a.now = time.Now(); a.over() {
			return false, a.busy(nil)
		}
	}
}

// tryTogether sends the script once, and again while Redis does not answer.
func (m *multi) tryTogether(ctx context.Context, a *attempt) (done bool, err error) {
	limit := a.limit()
	a.heard = false
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		done, again, err := m.sendTogether(ctx, a, limit)
		if !again || err == nil {
			return done, err
		}
		if a.now.Add(pause).After(limit) {
			return false, a.unavailable(ctx, err)
		}
		if err := m.client.sleepOpen(ctx, pause); err != nil {
			return false, a.stopped(ctx, err)
		}
		a.now = time.Now()
	}
}

func (m *multi) sendTogether(ctx context.Context, a *attempt, limit time.Time) (done, again bool, err error) {
	c := m.client
	field := c.nextField()
	call := c.store.AcquireAll(a.now, m.notOwned, field, m.req.lease)
	m.report.Attempts++
	reply, fate, err := call.Wait(ctx, limit)
	a.now = time.Now()
	if err != nil {
		if fate == redisstore.Unknown {
			late := call
			c.abandon(m.notOwned, field, &late, m.req.lease)
			a.ghosts = append(a.ghosts, field)
		}
		_, again, err = a.failed(ctx, err, limit)
		return false, again, err
	}
	a.heard = true
	refusal, err := redisstore.Granted(reply)
	if err != nil {
		return false, false, unavailable(err)
	}
	if refusal != nil && slices.Contains(a.ghosts, refusal.Holder) {
		return false, true, errGhost
	}
	if refusal != nil {
		a.key = m.notOwned[min(max(refusal.Index, 0), len(m.notOwned)-1)]
		a.refused(refusal)
		return false, false, nil
	}
	return m.granted(ctx, a, call.Sent, field)
}

func (m *multi) granted(ctx context.Context, a *attempt, sent time.Time, field string) (done, again bool, err error) {
	c := m.client
	late := deadlineAfter(sent, m.req.lease).Before(a.now)
	if late || ctx.Err() != nil {
		for _, key := range m.notOwned {
			c.relinquish(key, field, m.req.lease)
		}
		if ctx.Err() != nil {
			return false, false, a.stopped(ctx, contextCause(ctx))
		}
		return false, true, errTooLate
	}
	m.report.RoundTrip = a.now.Sub(sent)
	for _, key := range m.notOwned {
		o := c.newOwner(key, field, sent, m.req.lease)
		c.lines.took(key, nil, o, a.now)
		c.watchdog.add(o, m.req.watchdog, a.now)
		m.got = append(m.got, o)
	}
	return true, false, nil
}

// takeOneByOne takes the keys in sorted order, waiting in the line of each.
func (m *multi) takeOneByOne(ctx context.Context) error {
	for _, key := range m.notOwned {
		a := m.client.newAttempt(ctx, key, m.req, m.report)
		o, err := a.run(ctx)
		switch {
		case err != nil && a.timeUp() && m.refused != nil:
			return m.refused.busy(nil) // Redis answered a moment ago
		case err != nil:
			return err
		}
		m.client.watchdog.add(o, m.req.watchdog, a.now)
		m.got = append(m.got, o)
	}
	return m.extend(ctx)
}

// extend gives the keys that were had first, while others were waited for, their
// whole lease again. One that was lost meanwhile fails the acquisition.
func (m *multi) extend(ctx context.Context) error {
	if len(m.got) == 1 {
		return nil
	}
	err := eachOwner(m.got[:len(m.got)-1], func(_ int, o *owner) error {
		sent, err := o.setCount(ctx, 1, m.req.lease, time.Now().Add(m.client.cfg.backendTimeout))
		if err != nil {
			return err
		}
		o.acknowledge(sent, m.req.lease)
		m.client.watchdog.update(o)
		return o.loss()
	})
	if err == nil || errors.Is(err, ErrUnavailable) {
		return err
	}
	return &NotAcquiredError{Key: m.got[0].key, Waited: time.Since(m.report.Start), Cause: err}
}

// rollBack frees what was taken. Nobody has seen it yet.
func (m *multi) rollBack(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	_ = eachOwner(m.got, func(_ int, o *owner) error { //nolint:errcheck // the resolver goes on
		_, err := o.freeLast(ctx, time.Now())
		return err
	})
	m.got = nil
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
