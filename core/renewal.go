package core

import (
	"container/heap"
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// renew is one pass over the owners that are due: one batch per node and kind, none of
// which waits for another.
func (w *watchdog) renew(ctx context.Context, owners []*owner) {
	type batch struct {
		node string
		kind *redisstore.Kind
	}
	batches := make(map[batch][]*owner)
	for _, o := range owners {
		b := batch{w.client.store.NodeName(ctx, o.key), o.kind}
		batches[b] = append(batches[b], o)
	}
	for _, group := range batches {
		w.client.spawn(func(ctx context.Context) { w.renewNode(ctx, group) })
	}
}

func (w *watchdog) renewNode(ctx context.Context, owners []*owner) {
	c := w.client
	ctx, cancel := context.WithTimeout(ctx, c.renewTimeout())
	defer cancel()
	claims := make([]redisstore.Claim, 0, len(owners))
	wanted := make([]*owner, 0, len(owners))
	for _, o := range owners {
		if o.renewable() {
			claims = append(claims, o.claim())
			wanted = append(wanted, o)
		} else {
			w.renewed(o, false)
		}
	}
	sent := time.Now()
	for i, v := range c.store.Renew(ctx, claims, c.cfg.watchdog) {
		wanted[i].renewal(v, sent)
		w.renewed(wanted[i], v.Err != nil)
	}
}

// renewable says whether a renewal still makes sense.
func (o *owner) renewable() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phase == held && o.watchdogs > 0
}

// renewal takes in what Redis said. A release that has begun makes it void.
func (o *owner) renewal(v redisstore.Verdict, sent time.Time) {
	c := o.client
	switch {
	case v.MayLand():
		o.unanswered()
	case v.Err != nil: // refused: it has changed nothing
	case v.Held:
		o.acknowledge(sent, c.cfg.watchdog)
	default:
		o.lose(errNotMine)
		return
	}
	o.mu.Lock()
	scopes := append([]*scope(nil), o.scopes...)
	o.mu.Unlock()
	for _, s := range scopes {
		s.renewed()
	}
	o.observeRenewal(scopes, v.Err, sent)
}

func (o *owner) observeRenewal(scopes []*scope, err error, sent time.Time) {
	c := o.client
	if len(c.cfg.observers.renewal) == 0 {
		return
	}
	late := max(sent.Sub(c.start)-o.renewAtSafe()-c.cfg.watchdog/coalesce, 0)
	for _, s := range scopes {
		if s.observed != nil {
			c.cfg.observers.observeRenewal(s.observed, Renewal{HoldInfo: s.info, Err: unavailable(err), Late: late})
		}
	}
}

func (o *owner) renewAtSafe() time.Duration {
	w := o.client.watchdog
	w.mu.Lock()
	defer w.mu.Unlock()
	return o.renewAt
}

// renewed plans the next renewal: a failed one is tried again soon, until the
// deadline.
func (w *watchdog) renewed(o *owner, failed bool) {
	wait := w.period()
	if failed {
		wait = jittered(min(w.client.cfg.watchdog/coalesce, time.Second))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o.renewing = false
	if done := w.passe[o]; done != nil {
		close(done)
		delete(w.passe, o)
	}
	o.renewAt = time.Since(w.client.start) + wait
	if !o.renewable() {
		o.renewAt = 0
	}
	if o.index >= 0 {
		o.next = w.due(o)
		heap.Fix(&w.heap, o.index)
		w.expect(o)
	}
}

// settle waits until no renewal of o is on the wire, at most until limit.
func (w *watchdog) settle(ctx context.Context, o *owner, limit time.Time) error {
	w.mu.Lock()
	if !o.renewing {
		w.mu.Unlock()
		return nil
	}
	done := w.passe[o]
	if done == nil {
		done = make(chan struct{})
		w.passe[o] = done
	}
	w.mu.Unlock()
	timeout := time.NewTimer(time.Until(limit))
	defer timeout.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return contextCause(ctx)
	case <-timeout.C:
		return errRenewing
	case <-w.client.life.Done():
		return ErrClosed
	}
}

var errRenewing = errors.New("a renewal is on its way and not answered")

// renewTimeout is how long one renewal may take, so that several fit into a lease.
func (c *Client) renewTimeout() time.Duration { return c.cfg.watchdog / 6 }
