package core

import (
	"context"
	"errors"
	"time"
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
		if err := c.reenter(ctx, o, req, report); err != nil {
			m.rollBack(ctx)
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
	a.keys = m.notOwned
	if err := m.client.gate.check(ctx, a.key); err != nil {
		return false, err
	}
	for give := a.now.Add(together); ; {
		g, err := a.try(ctx)
		switch {
		case err != nil:
			return false, err
		case !g.refused():
			m.own(a, g)
			return true, nil
		case a.over():
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

// own registers the owners that one script has brought.
func (m *multi) own(a *attempt, g grant) {
	for _, key := range m.notOwned {
		o := a.owner(key, g)
		m.client.lines.took(key, nil, o, a.now)
		m.client.watchdog.add(o, m.req.watchdog, a.now)
		m.got = append(m.got, o)
	}
}

// takeOneByOne takes the keys in sorted order, waiting in the line of each.
func (m *multi) takeOneByOne(ctx context.Context) error {
	var a attempt
	for _, key := range m.notOwned {
		a = m.client.newAttempt(ctx, key, m.req, m.report)
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
	return m.extend(ctx, &a)
}

// extend gives the keys that were had first, while others were waited for, their
// whole lease again. One that was lost meanwhile fails the acquisition.
func (m *multi) extend(ctx context.Context, a *attempt) error {
	if len(m.got) == 1 {
		return nil
	}
	err := eachOwner(m.got[:len(m.got)-1], func(_ int, o *owner) error {
		sent, err := o.setCount(ctx, 1, m.req.lease, a.span())
		if err != nil {
			return err
		}
		o.acknowledge(sent, m.req.lease)
		m.client.watchdog.update(o)
		return o.loss()
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return a.busy(contextCause(ctx))
	case errors.Is(err, ErrUnavailable):
		return err
	default:
		return &NotAcquiredError{Key: m.got[0].key, Waited: time.Since(m.report.Start), Cause: err}
	}
}

// rollBack frees what was taken, which nobody has seen yet. With a Redis that answers
// it is gone on return; one that does not holds the caller up for no longer than
// together beyond the wait time or ctx.
func (m *multi) rollBack(ctx context.Context) {
	if len(m.got) == 0 {
		return
	}
	a := m.client.newAttempt(ctx, m.got[0].key, m.req, m.report)
	a.now = time.Now()
	patience := together
	var ended <-chan struct{}
	if ctx.Err() == nil {
		patience, ended = max(together, a.limit().Sub(a.now)), ctx.Done()
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	gone, got := make(chan struct{}), m.got
	m.got = nil
	m.client.spawn(func(life context.Context) {
		defer close(gone)
		_ = eachOwner(got, func(_ int, o *owner) error { //nolint:errcheck // the resolver goes on
			_, err := o.freeLast(context.WithoutCancel(life), time.Now())
			return err
		})
	})
	select {
	case <-gone:
	case <-limit.C:
	case <-ended:
	}
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
