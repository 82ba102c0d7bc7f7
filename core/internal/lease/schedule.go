package lease

import (
	"math"
	"time"

	"github.com/interlock-go/interlock/core/internal/dueheap"
)

// schedule is when the watchdog looks at a lease. Times are since the client's start.
//
//	no wish ── Renew ──▶ waits until renewAt ──▶ renewing ── answered, or not ──▶ waits
//	   ▲                                            │
//	   └───────────── no wish is left ──────────────┘
//
// The deadline is looked at in all of them, and so is whether a question is due, as long as
// the lease is held. A lease is in the heap, where [Watchdog.Drained] sees it, from Watch until
// it is lost or ended: also while it is being released, however long ago its deadline was, when
// there is nothing more to look at.
type schedule struct {
	dueheap.Slot

	lease    *Lease
	next     time.Duration // the next look
	renewAt  time.Duration // 0: no renewal is planned
	renewing bool
	answered chan struct{} // closed when that renewal was; nil if nobody waits for it
	inquiry  inquiry
}

// never is when the watchdog looks at a lease that is not held any more, but not ended.
const never time.Duration = math.MaxInt64

// DueBefore is for the heap.
func (s *schedule) DueBefore(other *schedule) bool { return s.next < other.next }

// plan sets the next look, as the clocks are now.
func (s *schedule) plan(now time.Time) {
	if !s.lease.Held() {
		s.next = never
		return
	}
	s.next = now.Sub(s.lease.dog.cfg.Start) + s.lease.Left(now)
	if s.renewAt > 0 && !s.renewing {
		s.next = min(s.next, s.renewAt)
	}
	if s.inquiry.state == waiting {
		s.next = min(s.next, s.inquiry.at)
	}
}

// done ends a renewal; the next one is at renewAt.
func (s *schedule) done(renewAt time.Duration) {
	s.renewing, s.renewAt = false, renewAt
	if s.answered != nil {
		close(s.answered)
		s.answered = nil
	}
}

// Watch has the deadline looked at from now on.
func (l *Lease) Watch(now time.Time) { l.dog.watch(l, now) }

// Renew watches the lease, too, and renews it every third of the watchdog's TTL, until as
// many calls of StopRenewal have followed.
func (l *Lease) Renew(now time.Time) {
	l.wish(1)
	l.dog.watch(l, now)
}

// StopRenewal takes one call of Renew back. A renewal on the wire goes on.
func (l *Lease) StopRenewal() { l.wish(-1) }

func (l *Lease) wish(n int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wishes += n
}

// wanted reports whether a renewal makes sense.
func (l *Lease) wanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == held && l.wishes > 0
}

// Renewing is closed when the renewal that is on the wire was answered, or not; nil if none
// is.
func (l *Lease) Renewing() <-chan struct{} {
	l.dog.mu.Lock()
	defer l.dog.mu.Unlock()
	s := &l.schedule
	if s.renewing && s.answered == nil {
		s.answered = make(chan struct{})
	}
	return s.answered
}
