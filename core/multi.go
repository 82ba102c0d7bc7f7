package core

import (
	"context"
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
	reentered := 0
	for _, o := range owners {
		if o == nil {
			continue
		}
		if err := c.reenter(ctx, o, req); err != nil {
			m.rollBack(ctx)
			c.undoReentries(ctx, owners[:], reentered)
			return nil, err
		}
		reentered++
	}
	if reentered == len(keys) {
		report.Outcome = OutcomeReentered
	}
	return m.merge(owners), nil
}

// undoReentries takes back the first n re-entries.
func (c *Client) undoReentries(ctx context.Context, owners []*owner, n int) {
	for _, o := range owners {
		if o == nil || n == 0 {
			continue
		}
		n--
		c.resetCount(ctx, o)
	}
}

// resetCount writes the count that the holder knows, after an entry that did not
// become a hold.
func (c *Client) resetCount(ctx context.Context, o *owner) {
	ctx = context.WithoutCancel(ctx)
	if err := o.begin(ctx); err != nil {
		return
	}
	defer o.end()
	if n := o.holds(); n > 0 {
		_, _ = o.setCount(ctx, n, 0, time.Now().Add(c.cfg.backendTimeout)) //nolint:errcheck // the next entry or release writes it again
	}
}

// multi is the acquisition of several keys that are not owned yet.
type multi struct {
	client   *Client
	req      *request
	report   *AcquireResult
	notOwned []string
	got      []*owner
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
	a := m.client.newAttempt(ctx, m.notOwned[0], m.req, m.report)
	if err := m.client.gate.check(ctx, a.key); err != nil {
		return false, err
	}
	once := !m.req.forever && m.req.wait == 0
	for give := time.Now().Add(together); ; {
		if done, err := m.tryTogether(ctx, a); done || err != nil {
			return done, err
		}
		if once {
			return false, a.busy(nil)
		}
		now := time.Now()
		if a.over(now.Add(togetherStep)) && m.req.wait < together {
			return false, a.busy(nil)
		}
		if now.After(give) || m.client.lines.others(a.key) {
			return false, nil
		}
		if err := m.client.sleepOpen(ctx, togetherStep); err != nil {
			return false, a.stopped(ctx, err)
		}
	}
}

// tryTogether sends the script once, and again while Redis does not answer.
func (m *multi) tryTogether(ctx context.Context, a *attempt) (done bool, err error) {
	limit := a.limit(time.Now())
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		done, again, err := m.sendTogether(ctx, a, limit)
		if !again || err == nil {
			return done, err
		}
		if time.Now().Add(pause).After(limit) {
			return false, a.unavailable(ctx, err)
		}
		if err := m.client.sleepOpen(ctx, pause); err != nil {
			return false, a.stopped(ctx, err)
		}
	}
}

func (m *multi) sendTogether(ctx context.Context, a *attempt, limit time.Time) (done, again bool, err error) {
	c := m.client
	field := c.nextField()
	call := c.store.AcquireAll(m.notOwned, field, m.req.lease)
	m.report.Attempts++
	reply, fate, err := call.Wait(ctx, limit)
	if err != nil {
		if fate == redisstore.Unknown {
			m.abandonAll(field, call)
		}
		_, again, err = a.failed(ctx, err, limit)
		return false, again, err
	}
	refusal, err := redisstore.Granted(reply)
	if err != nil {
		return false, false, unavailable(err)
	}
	if refusal != nil {
		a.key = m.notOwned[min(max(refusal.Index, 0), len(m.notOwned)-1)]
		a.refused(refusal)
		return false, false, nil
	}
	return m.granted(ctx, a, call, field)
}

func (m *multi) abandonAll(field string, call *redisstore.Call) {
	for _, key := range m.notOwned {
		m.client.abandon(key, field, call, m.req.lease)
		call = nil // one of them waits for the reply, which is that of the first key
	}
}

func (m *multi) granted(ctx context.Context, a *attempt, call *redisstore.Call, field string) (done, again bool, err error) {
	c, now := m.client, time.Now()
	late := deadlineAfter(call.Sent, m.req.lease).Before(now)
	if late || ctx.Err() != nil {
		m.abandonAll(field, nil)
		if ctx.Err() != nil {
			return false, false, a.stopped(ctx, contextCause(ctx))
		}
		return false, true, errTooLate
	}
	m.report.RoundTrip = now.Sub(call.Sent)
	for _, key := range m.notOwned {
		o := c.newOwner(key, field, call.Sent, m.req.lease)
		c.lines.took(key, nil, o)
		c.watchdog.add(o, m.req.watchdog)
		m.got = append(m.got, o)
	}
	return true, false, nil
}

// takeOneByOne takes the keys in sorted order, waiting in the line of each.
func (m *multi) takeOneByOne(ctx context.Context) error {
	for _, key := range m.notOwned {
		a := m.client.newAttempt(ctx, key, m.req, m.report)
		o, err := a.run(ctx)
		if err != nil {
			return err
		}
		m.client.watchdog.add(o, m.req.watchdog)
		m.got = append(m.got, o)
	}
	return nil
}

// rollBack frees what was taken. Nobody has seen it yet.
func (m *multi) rollBack(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, o := range m.got {
		if err := o.close(); err != nil {
			continue
		}
		m.client.watchdog.remove(o)
		_, _ = o.free(ctx, time.Now().Add(m.client.cfg.backendTimeout)) //nolint:errcheck // the resolver goes on
		o.finish()
	}
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
