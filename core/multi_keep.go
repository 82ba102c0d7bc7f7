package core

import (
	"cmp"
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
	err := joined(eachOwnership(owners, func(o *ownership) error {
		o.lease.Ask(m.req.lease)
		sent, err := o.setCount(ctx, 1, m.req.lease, a.span())
		o.raised(sent, m.req.lease, err)
		return cmp.Or(err, o.lease.Loss())
	}))
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

// giveBack frees what was taken. With a Redis that answers it is gone on return; one that
// does not holds the caller up for no longer than the backend timeout, or grace beyond the
// wait time or ctx.
func (m *multi) giveBack(ctx context.Context) {
	got := slices.DeleteFunc(slices.Clone(m.got), func(o *ownership) bool { return o == nil })
	clear(m.got)
	if len(got) == 0 {
		return
	}
	a := m.client.newAttempt(ctx, m.keys[m.first], m.req, m.report, time.Now())
	giveBack(ctx, got, a.limit().Sub(a.now))
}

// giveBack frees ownerships that nobody has seen yet, all at once. It waits for that as long
// as its patience lasts, or for no longer than grace once ctx has ended.
func giveBack(ctx context.Context, got []*ownership, patience time.Duration) {
	if len(got) == 0 {
		return
	}
	ended := ctx.Done()
	if ctx.Err() != nil {
		patience, ended = 0, nil
	}
	limit := time.NewTimer(max(grace, patience))
	defer limit.Stop()
	gone := make(chan struct{}, len(got))
	for _, o := range got {
		o.client.spawn(func(life context.Context) {
			_ = o.freeNow(context.WithoutCancel(life)) //nolint:errcheck // the reaper goes on
			gone <- struct{}{}
		})
	}
	for range got {
		select {
		case <-gone:
		case <-limit.C:
			return
		case <-ended:
			return
		}
	}
}
