package lease

import (
	"math"
	"time"

	"github.com/interlock-go/interlock/core/internal/dueheap"
)

// schedule plans when the watchdog looks at a lease. All times count from the start of the client.
//
//	no wish ── Renew ──▶ waits until renewAt ──▶ renewing ── answered, or failed ─▶ waits
//	   ▲                                            │
//	   └───────────── no wish is left ──────────────┘
//
// In each state, while the lease is held, the watchdog also checks the deadline and sends questions that are due. A
// lease is in the heap from Watch or Renew until it is lost or ended, so [Watchdog.Drained] waits for it. A lease that is
// being released stays in the heap even after its deadline, although the watchdog then has nothing to do for it.
type schedule struct {
	dueheap.Slot

	lease    *Lease
	next     time.Duration // time of the next look
	renewAt  time.Duration // 0: no renewal is planned
	renewing bool
	answered chan struct{} // closed when that renewal was answered or failed; nil if no caller waits for it
	inquiry  inquiry
}

// never is the time of the next look at a lease that is not held any more but has not ended.
const never time.Duration = math.MaxInt64

// DueBefore orders the heap.
func (s *schedule) DueBefore(other *schedule) bool { return s.next < other.next }

// plan computes the time of the next look from the present clocks.
func (s *schedule) plan(now time.Time) {
	if !s.lease.Held() {
		s.next = never
		return
	}
	s.next = now.Sub(s.lease.watchdog.cfg.Start) + s.lease.Left(now)
	if s.renewAt > 0 && !s.renewing {
		s.next = min(s.next, s.renewAt)
	}
	if s.inquiry.state == waiting {
		s.next = min(s.next, s.inquiry.at)
	}
}

// finishRenewal records the end of a renewal and plans the next renewal at renewAt.
func (s *schedule) finishRenewal(renewAt time.Duration) {
	s.renewing, s.renewAt = false, renewAt
	if s.answered != nil {
		close(s.answered)
		s.answered = nil
	}
}

// Watch puts the lease under watch: from now on the watchdog checks its deadline.
func (l *Lease) Watch(now time.Time) { l.watchdog.watch(l, now) }

// Renew puts the lease under watch and makes the watchdog renew it. The interval is a third of the TTL. The renewals stop
// when StopRenewal was called as often as Renew.
func (l *Lease) Renew(now time.Time) {
	l.addWishes(1)
	l.watchdog.watch(l, now)
}

// StopRenewal undoes one call of Renew. It does not stop a renewal that is on its way.
func (l *Lease) StopRenewal() { l.addWishes(-1) }

// addWishes adds n, which may be negative, to the number of holds that want renewals.
func (l *Lease) addWishes(n int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wishes += n
}

// needsRenewal reports whether the lease needs renewals.
func (l *Lease) needsRenewal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == held && l.wishes > 0
}

// Renewing returns a channel that is closed when the renewal on its way was answered or failed. It returns nil if no
// renewal is on its way.
func (l *Lease) Renewing() <-chan struct{} {
	l.watchdog.mu.Lock()
	defer l.watchdog.mu.Unlock()
	s := &l.schedule
	if s.renewing && s.answered == nil {
		s.answered = make(chan struct{})
	}
	return s.answered
}
