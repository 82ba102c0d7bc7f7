package lease

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Renewer sends renewals to Redis.
type Renewer interface {
	// NodeName returns the name of the node that has a key.
	NodeName(ctx context.Context, key string) string

	// Renew raises the TTL of claims of one kind on one node to ttl if they still hold. If ttl is 0, it only checks
	// whether they hold. The verdicts are in the order of the claims.
	Renew(ctx context.Context, claims []redisstore.Claim, ttl time.Duration) []redisstore.Verdict
}

// eachBatch calls do once per node and kind, with a batch of leases. No batch waits for another.
func (w *Watchdog) eachBatch(ctx context.Context, leases []*Lease, do func(ctx context.Context, batch []*Lease)) {
	type path struct {
		node string
		kind *redisstore.Kind
	}
	batches := make(map[path][]*Lease)
	for _, l := range leases {
		p := path{w.cfg.Renewer.NodeName(ctx, l.Key), l.Kind}
		batches[p] = append(batches[p], l)
	}
	for _, batch := range batches {
		w.cfg.Spawn(func(ctx context.Context) { do(ctx, batch) })
	}
}

// renewBatch renews leases that one script can renew. It applies all verdicts before it notifies any holder, because a
// holder may be slow. It reports losses before renewals.
func (w *Watchdog) renewBatch(ctx context.Context, batch []*Lease) {
	renewals, claims := w.beginRenewals(batch)
	if len(renewals) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	sent := time.Now()
	verdicts := w.cfg.Renewer.Renew(ctx, claims, w.cfg.TTL)
	late := make([]time.Duration, len(renewals))
	for i := range renewals {
		r := &renewals[i]
		r.apply(verdicts[i], sent)
		late[i] = w.finishRenewal(r.lease, sent, verdicts[i].Err != nil || r.outdated)
	}
	for i := range renewals {
		if renewals[i].lost {
			renewals[i].lease.notifyLoss()
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the client was closed: a renewal that was cut short has not failed
	}
	for i := range renewals {
		r, v := &renewals[i], verdicts[i]
		if !r.outdated && (v.Held || v.Err != nil) {
			r.lease.holder.Renewed(v.Err, late[i])
		}
	}
}

// renewal is a renewal of a lease on its way.
type renewal struct {
	lease  *Lease
	passes int // see Lease

	outdated bool // the lease was passed on in between
	lost     bool // Redis no longer had the claim, so the lease is lost
}

// beginRenewals prepares the renewals of the leases that still need one. It returns them and their claims.
func (w *Watchdog) beginRenewals(batch []*Lease) (renewals []renewal, claims []redisstore.Claim) {
	for _, l := range batch {
		if r, wanted := l.beginRenewal(); wanted {
			renewals, claims = append(renewals, r), append(claims, l.Claim)
		} else {
			w.finishRenewal(l, time.Now(), false)
		}
	}
	return renewals, claims
}

// beginRenewal prepares a renewal with the watchdog's TTL, if the lease still needs one.
func (l *Lease) beginRenewal() (r renewal, wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wanted = l.phase == held && l.wishes > 0
	if wanted {
		l.granted.ask(l.watchdog.cfg.TTL)
		l.asked = true
	}
	return renewal{lease: l, passes: l.passes}, wanted
}

// apply applies a verdict. If a release has begun, the verdict has no effect. If the lease was passed on, the verdict was
// for the earlier holder: it extends nothing, but the lease is lost if Redis no longer has the claim, which is the same.
func (r *renewal) apply(v redisstore.Verdict, sent time.Time) {
	l := r.lease
	if v.MayLand() {
		l.RecordNoAnswer()
	}
	if v.Err == nil && !v.Held {
		r.lost = l.lose(l.watchdog.cfg.Gone)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.outdated = r.passes != l.passes; v.Err == nil && !r.outdated {
		l.applyReply(sent, l.watchdog.cfg.TTL)
	}
}

// finishRenewal records the end of a renewal that was sent at sent, and plans the next one. A renewal that failed, or was
// for an earlier holder, is repeated soon, until the deadline. finishRenewal returns how late this one was.
func (w *Watchdog) finishRenewal(l *Lease, sent time.Time, again bool) (late time.Duration) {
	wait := w.period()
	if again {
		wait = jitter.Of(min(w.cfg.TTL/coalesce, time.Second))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &l.schedule
	late = max(sent.Sub(w.cfg.Start)-s.renewAt-w.cfg.TTL/coalesce, 0)
	now, next := time.Now(), time.Duration(0)
	if l.needsRenewal() {
		next = now.Sub(w.cfg.Start) + wait
	}
	s.finishRenewal(next)
	w.replan(s, now)
	return late
}
