package lease

import (
	"context"
	"slices"
	"time"
)

// A step of the wall clock that is followed, which is within the margin, and how often it
// is looked for while there are leases.
const (
	clockJump  = granularity
	clockCheck = time.Second
)

// coalesce is the part of the TTL by which renewals are brought forward to travel with
// others.
const coalesce = 30

// Run is the scheduler, until ctx ends.
func (w *Watchdog) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(w.look())
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// look handles what is due, and says when the next look is.
func (w *Watchdog) look() time.Duration {
	now := time.Now()
	over, due, next := w.collect(now)
	for _, l := range over {
		if l.CheckClock(now) == nil {
			w.watch(l, now) // renewed in this instant, or being released
		}
	}
	if len(due) > 0 {
		w.cfg.Spawn(func(ctx context.Context) { w.renew(ctx, due) })
	}
	return next
}

// collect takes from the heap what is over, and gives what is to be renewed.
func (w *Watchdog) collect(now time.Time) (over, due []*Lease, next time.Duration) {
	at := now.Sub(w.cfg.Start)
	soon := at + w.cfg.TTL/coalesce
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.alarm = at + next }()
	w.followWallClock(now)
	for w.heap.Len() > 0 {
		s := w.heap.First()
		switch {
		case s.lease.Expired(now):
			w.drop(s)
			over = append(over, s.lease)
			continue
		case s.renewing || s.renewAt == 0 || s.renewAt > soon || len(due) == 0 && s.renewAt > at:
			return over, due, min(max(s.next-at, time.Millisecond), clockCheck)
		}
		s.renewing = true
		s.plan(now)
		w.heap.Fix(s)
		due = append(due, s.lease)
	}
	return over, due, time.Hour
}

// followWallClock plans anew what was planned before the wall clock was moved on, because
// the machine was suspended, or set back. The mutex is held.
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
