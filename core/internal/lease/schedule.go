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
// In each state the watchdog also looks at the deadline, and at questions that are due, while the lease is held.
// A lease is in the heap, where [Watchdog.Drained] sees it, from Watch until it is lost or ended. It stays there
// while it is being released, however long ago its deadline was, although the watchdog has nothing to look at
// then.
type schedule struct {
	dueheap.Slot

	lease    *Lease
	next     time.Duration // the next look
	renewAt  time.Duration // 0: no renewal is planned
	renewing bool
	answered chan struct{} // closed when that renewal was answered, or not; nil if no caller waits for it
	inquiry  inquiry
}

// never is when the watchdog looks at a lease that is not held any more but has not ended.
const never time.Duration = math.MaxInt64

// DueBefore orders the heap.
func (s *schedule) DueBefore(other *schedule) bool { return s.next < other.next }

// plan sets the next look by the clocks as they are now.
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

// Watch puts the lease under watch: from now on the watchdog looks at its deadline.
func (l *Lease) Watch(now time.Time) { l.dog.watch(l, now) }

// Renew puts the lease under watch and renews it every third of the watchdog's TTL, until StopRenewal was called
// as often as Renew.
func (l *Lease) Renew(now time.Time) {
	l.wish(1)
	l.dog.watch(l, now)
}

// StopRenewal takes one call of Renew back. A renewal on its way is not stopped.
func (l *Lease) StopRenewal() { l.wish(-1) }

func (l *Lease) wish(n int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wishes += n
}

// wanted reports whether the lease needs renewals.
func (l *Lease) wanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == held && l.wishes > 0
}

// Renewing returns a channel that is closed when the renewal on its way was answered, or not. It is nil if there
// is none.
func (l *Lease) Renewing() <-chan struct{} {
	l.dog.mu.Lock()
	defer l.dog.mu.Unlock()
	s := &l.schedule
	if s.renewing && s.answered == nil {
		s.answered = make(chan struct{})
	}
	return s.answered
}
