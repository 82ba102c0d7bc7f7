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
	leases, claims := w.filterRenewed(batch)
	if len(leases) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	sent := time.Now()
	verdicts := w.cfg.Renewer.Renew(ctx, claims, w.cfg.TTL)
	over, late := make([]bool, len(leases)), make([]time.Duration, len(leases))
	for i, l := range leases {
		over[i] = l.applyVerdict(verdicts[i], sent)
		late[i] = w.finishRenewal(l, sent, verdicts[i].Err != nil)
	}
	for i, l := range leases {
		if over[i] {
			l.notifyLoss()
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the client was closed: a renewal that was cut short has not failed
	}
	for i, l := range leases {
		if v := verdicts[i]; v.Held || v.Err != nil {
			l.holder.Renewed(v.Err, late[i])
		}
	}
}

// filterRenewed returns the leases that still need a renewal, and their claims.
func (w *Watchdog) filterRenewed(batch []*Lease) (leases []*Lease, claims []redisstore.Claim) {
	for _, l := range batch {
		if l.beginRenewal() {
			leases, claims = append(leases, l), append(claims, l.Claim)
		} else {
			w.finishRenewal(l, time.Now(), false)
		}
	}
	return leases, claims
}

// beginRenewal prepares a renewal with the watchdog's TTL and reports whether the lease still needs one.
func (l *Lease) beginRenewal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	wanted := l.phase == held && l.wishes > 0
	if wanted {
		l.granted.ask(l.watchdog.cfg.TTL)
		l.asked = true
	}
	return wanted
}

// applyVerdict applies a verdict and reports whether the lease was lost by it. If a release has begun, the verdict has
// no effect.
func (l *Lease) applyVerdict(v redisstore.Verdict, sent time.Time) (over bool) {
	if v.MayLand() {
		l.RecordNoAnswer()
	}
	switch {
	case v.Err != nil: // the lease is not extended
	case v.Held:
		l.confirmRenewal(sent)
	default:
		return l.lose(l.watchdog.cfg.Gone)
	}
	return false
}

func (l *Lease) confirmRenewal(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.applyReply(sent, l.watchdog.cfg.TTL)
}

// finishRenewal records the end of a renewal that was sent at sent, and plans the next one. A renewal that failed is
// repeated soon, until the deadline. finishRenewal returns how late this one was.
func (w *Watchdog) finishRenewal(l *Lease, sent time.Time, failed bool) (late time.Duration) {
	wait := w.period()
	if failed {
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
