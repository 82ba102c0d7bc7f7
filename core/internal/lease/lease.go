package lease

import (
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// phase is the life of a lease. It only goes forward, by [Lease.become].
//
//	held ── BeginRelease ──▶ releasing ── End ──▶ ended
//	  │                                             ▲
//	  ├── End ──────────────────────────────────────┘
//	  └── Lose, the deadline, Redis ──▶ lost
//
// A lease that is held or releasing stays under watch, once it is, so that a caller that waits until no lease is
// left waits for releases, too. A lease that is ended or lost is forgotten.
type phase uint8

const (
	held      phase = iota
	releasing       // the last release has begun: renewals and losses do not count any more
	ended           // released, left to expire, or passed on
	lost            // ended under its holder
)

// Lease is a claim in Redis, and how long the client can rely on it. A claim was never used before and is never
// used again. [Watchdog.Open] makes a Lease in memory of its holder. All methods are safe for concurrent use.
// Only Lose, CheckClock and methods that say so call the holder.
type Lease struct {
	redisstore.Claim

	dog      *Watchdog
	holder   Holder
	deadline deadline
	schedule schedule // with the inquiry; guarded by the watchdog

	mu      sync.Mutex
	phase   phase
	asked   bool  // a TTL was asked for, and no reply has confirmed one since
	wishes  int32 // how many want it renewed
	cause   error // of the loss
	granted granted
	trust   trust
	reserve time.Duration // how much longer than the deadline Redis has confirmed the lease: see Pass
}

// trust limits what the lease believes of Redis after commands without an answer.
type trust struct {
	landing time.Duration // until when such a command may be executed, since the client's start; 0: there is none
	most    time.Duration // longest TTL that a reply confirms; 0: any
}

// Holder has a lease.
type Holder interface {
	// Lost is called once when the lease has ended under its holder, in the goroutine that found out.
	Lost(cause error)

	// Renewed reports that Redis was asked to renew the lease. err is why it has not. late is how much later
	// than planned the request was sent.
	Renewed(err error, late time.Duration)
}

// Open makes l the lease of a claim that Redis has granted for ttl to a command sent at sent. The lease is not
// under watch yet.
func (w *Watchdog) Open(l *Lease, claim redisstore.Claim, holder Holder, sent time.Time, ttl time.Duration) {
	l.Claim, l.dog, l.holder, l.granted.longest = claim, w, holder, ttl
	l.schedule.lease = l
	l.deadline.set(w.cfg.Start, DeadlineAfter(sent, ttl))
}

// Holder returns the holder.
func (l *Lease) Holder() Holder { return l.holder }

// become goes to the next phase if the phase can follow, and reports whether it did. The mutex is held.
func (l *Lease) become(next phase) bool {
	if next <= l.phase || next == lost && l.phase != held {
		return false
	}
	l.phase = next
	return true
}

// BeginRelease makes replies to renewals void and a loss impossible. If the lease was lost before, it returns
// the cause.
func (l *Lease) BeginRelease() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.become(releasing)
	return l.cause
}

// End ends the lease, unless it was lost, and ends the watch over it.
func (l *Lease) End() {
	l.mu.Lock()
	l.become(ended)
	l.mu.Unlock()
	l.dog.forget(l)
}

// Lose ends the lease because Redis does not have it any more, and notifies the holder. It does nothing once a
// release has begun.
func (l *Lease) Lose(cause error) {
	if l.lose(cause) {
		l.announce()
	}
}

// lose is Lose without notifying the holder. It reports whether the holder has to be notified.
func (l *Lease) lose(cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.become(lost) {
		return false
	}
	l.cause = cause
	return true
}

func (l *Lease) announce() {
	l.dog.forget(l)
	l.holder.Lost(l.Loss())
}

// CheckClock loses the lease if its deadline has passed. Then it returns the cause of the loss, also if another
// goroutine found it and has not finished calling Lost.
func (l *Lease) CheckClock(now time.Time) error {
	if !l.Expired(now) {
		return nil
	}
	l.Lose(l.dog.cfg.Over)
	return l.Loss()
}

// Loss returns why the lease was lost, nil if it was not.
func (l *Lease) Loss() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Held reports whether the lease is neither lost nor being released, as far as the client knows.
func (l *Lease) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == held
}

// Alive reports whether the client can rely on the lease: it is held, and its deadline has not passed.
func (l *Lease) Alive(now time.Time) bool { return l.Remaining(now) > 0 }

// Remaining returns how long the client can rely on the lease; 0 after its end.
func (l *Lease) Remaining(now time.Time) time.Duration {
	if !l.Held() {
		return 0
	}
	return max(l.Left(now), 0)
}

// Left returns how long the lease lasts by the clocks, in any phase; negative after its end.
func (l *Lease) Left(now time.Time) time.Duration {
	return l.deadline.left(l.dog.cfg.Start, now)
}

// Expired reports whether either clock is at the deadline.
func (l *Lease) Expired(now time.Time) bool { return l.Left(now) <= 0 }
