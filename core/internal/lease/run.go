package lease

import (
	"context"
	"slices"
	"time"
)

// While there are leases, the scheduler looks for a step of the wall clock every clockCheck. It reacts to a step that is
// larger than clockJump, which is within the margin.
const (
	clockJump  = granularity
	clockCheck = time.Second
)

// A renewal may be sent up to TTL/coalesce early to travel with others.
const coalesce = 30

// Run runs the scheduler until ctx is done.
func (w *Watchdog) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(w.handleDue())
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// handleDue handles everything that is due now and returns the time until the next call.
func (w *Watchdog) handleDue() time.Duration {
	now := time.Now()
	found := w.collect(now)
	w.endExpired(found.over, now)
	if len(found.renewals) > 0 {
		w.cfg.Spawn(func(ctx context.Context) { w.eachBatch(ctx, found.renewals, w.renewBatch) })
	}
	if len(found.questions) > 0 {
		w.cfg.Spawn(func(ctx context.Context) { w.eachBatch(ctx, found.questions, w.askBatch) })
	}
	return found.next
}

// endExpired loses leases whose deadline has passed. A lease that was renewed in between, or is being released, stays
// under watch.
func (w *Watchdog) endExpired(over []*Lease, now time.Time) {
	for _, l := range over {
		if l.CheckClock(now) == nil {
			w.update(l)
		}
	}
}

// findings contains what is due in one call of handleDue.
type findings struct {
	over      []*Lease      // leases whose deadline has passed
	renewals  []*Lease      // leases whose renewal is due
	questions []*Lease      // leases about which a question is due
	next      time.Duration // time until the next call
}

// collect returns everything that is due. It moves expired leases to the end of the heap. A lease leaves the heap only
// when it is lost or ended, so that [Watchdog.Drained] counts it until then.
func (w *Watchdog) collect(now time.Time) (f findings) {
	at := now.Sub(w.cfg.Start)
	soon := at + w.cfg.TTL/coalesce
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.alarm = at + f.next }()
	w.followWallClock(now)
	for w.heap.Len() > 0 {
		s := w.heap.First()
		switch {
		case s.next == never:
			f.next = clockCheck
			return f
		case s.lease.Expired(now):
			f.over = append(f.over, s.lease)
			s.next = never
			w.heap.Fix(s)
			continue
		case s.inquiry.due(at, len(f.questions) > 0):
			f.questions = append(f.questions, s.lease)
			s.inquiry.state = asking
		case s.renewing || s.renewAt == 0 || s.renewAt > soon || len(f.renewals) == 0 && s.renewAt > at:
			f.next = min(max(s.next-at, time.Millisecond), clockCheck)
			return f
		default:
			f.renewals = append(f.renewals, s.lease)
			s.renewing = true
		}
		s.plan(now)
		w.heap.Fix(s)
	}
	f.next = time.Hour
	return f
}

// followWallClock plans the next look at every lease again if the wall clock has stepped, because the machine was
// suspended or the clock was set. The caller holds the mutex.
func (w *Watchdog) followWallClock(now time.Time) {
	ahead := time.Duration(now.UnixNano()-w.cfg.Start.UnixNano()) - now.Sub(w.cfg.Start)
	if (ahead - w.ahead).Abs() <= clockJump {
		return
	}
	w.ahead = ahead
	for _, s := range slices.Clone(w.heap.All()) {
		s.plan(now)
		w.heap.Fix(s)
	}
}
