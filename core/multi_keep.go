package core

import (
	"context"
	"errors"
	"slices"
	"time"
)

// extend gives the keys that were acquired first, while others were waited for, their
// whole lease again. When one of them was lost meanwhile, the wait begins anew.
func (m *multi) extend(ctx context.Context, acquired []int) error {
	if len(acquired) == 0 {
		return nil
	}
	owners := make([]*ownership, len(acquired))
	for i, index := range acquired {
		owners[i] = m.got[index]
	}
	a := m.client.newAttempt(ctx, m.keys[acquired[0]], m.req, m.report, time.Now())
	err := eachOwnership(owners, func(o *ownership) error {
		sent, err := o.setCount(ctx, 1, m.req.lease, a.span())
		if err != nil {
			return err
		}
		o.lease.Acknowledge(sent, m.req.lease)
		return o.lease.Loss()
	})
	a.now = time.Now()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return a.busy(contextCause(ctx))
	case errors.Is(err, ErrUnavailable):
		return err
	case a.over():
		return a.busy(onlyMentioned(err))
	default:
		return errGaveUp
	}
}

// grace is how long a roll-back may hold up its caller beyond the wait time.
const grace = 50 * time.Millisecond

// giveBack frees what was taken, which nobody has seen yet. With a Redis that answers
// it is gone on return; one that does not holds the caller up for no longer than the
// backend timeout, or grace beyond the wait time or ctx.
func (m *multi) giveBack(ctx context.Context) {
	got := slices.DeleteFunc(slices.Clone(m.got), func(o *ownership) bool { return o == nil })
	clear(m.got)
	if len(got) == 0 {
		return
	}
	a := m.client.newAttempt(ctx, m.keys[m.first], m.req, m.report, time.Now())
	patience := grace
	var ended <-chan struct{}
	if ctx.Err() == nil {
		patience, ended = max(grace, a.limit().Sub(a.now)), ctx.Done()
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	gone := make(chan struct{})
	m.client.spawn(func(life context.Context) {
		defer close(gone)
		_ = eachOwnership(got, func(o *ownership) error { //nolint:errcheck // the reaper goes on
			return o.freeNow(context.WithoutCancel(life))
		})
	})
	select {
	case <-gone:
	case <-limit.C:
	case <-ended:
	}
}
