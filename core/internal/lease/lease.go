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
// A lease that is held or releasing stays under watch, once it is, so that who waits for the
// last one waits for its release, too; ended and lost are forgotten.
type phase uint8

const (
	held      phase = iota
	releasing       // the last release has begun: renewals and losses count no more
	ended           // released, left to its time, or passed on
	lost            // over under its holder
)

// Lease is what is held: a claim that was never used before and never will be again, and
// for how long it can be relied upon. It is made by [Watchdog.Open] in memory of its
// holder's. All methods are safe for concurrent use, and none but Lose, CheckClock and
// those that say so calls the holder.
type Lease struct {
	redisstore.Claim

	dog      *Watchdog
	holder   Holder
	deadline deadline
	schedule schedule // with the inquiry; guarded by the watchdog

	mu      sync.Mutex
	phase   phase
	asked   bool  // no reply has confirmed a TTL since one was asked for
	wishes  int32 // to renew it
	cause   error // of the loss
	granted granted
	trust   trust
	reserve time.Duration // Redis has confirmed the lease for so much longer than the deadline: see Pass
}

// trust is what may be believed of Redis after commands without an answer.
type trust struct {
	landing time.Duration // such a command may land until then, since the client's start; 0: there is none
	most    time.Duration // longest TTL that a reply confirms; 0: any
}

// Holder is who has a lease.
type Holder interface {
	// Lost is called once when the lease is over under its holder, in the goroutine that
	// found out.
	Lost(cause error)

	// Renewed reports that Redis was asked to renew the lease; err is why it has not. late is
	// by how much the request missed its time.
	Renewed(err error, late time.Duration)
}

// Open makes l the lease of a claim that Redis has given for ttl to a command sent at sent.
// Nobody watches it yet.
func (w *Watchdog) Open(l *Lease, claim redisstore.Claim, holder Holder, sent time.Time, ttl time.Duration) {
	l.Claim, l.dog, l.holder, l.granted.longest = claim, w, holder, ttl
	l.schedule.lease = l
	l.deadline.set(w.cfg.Start, DeadlineAfter(sent, ttl))
}

// Holder is who has the lease.
func (l *Lease) Holder() Holder { return l.holder }

// become goes to the next phase if there is a way, and reports whether. The mutex is held.
func (l *Lease) become(next phase) bool {
	if next <= l.phase || next == lost && l.phase != held {
		return false
	}
	l.phase = next
	return true
}

// BeginRelease makes replies to renewals void and a loss impossible. It fails with the
// cause of the loss when there was one before.
func (l *Lease) BeginRelease() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.become(releasing)
	return l.cause
}

// End ends the lease, if it was not lost, and the watch over it.
func (l *Lease) End() {
	l.mu.Lock()
	l.become(ended)
	l.mu.Unlock()
	l.dog.forget(l)
}

// Lose ends the lease because it is not there any more, and notifies the holder. It does
// nothing once a release has begun.
func (l *Lease) Lose(cause error) {
	if l.lose(cause) {
		l.announce()
	}
}

// lose is Lose without a word to the holder. It reports whether there is one to be said.
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

// CheckClock loses the lease when its deadline has passed, and gives the cause of the loss
// then, whoever found it: the call of Lost by another goroutine may be under way.
func (l *Lease) CheckClock(now time.Time) error {
	if !l.Expired(now) {
		return nil
	}
	l.Lose(l.dog.cfg.Over)
	return l.Loss()
}

// Loss is why the lease was lost, nil if it was not.
func (l *Lease) Loss() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Held reports whether the lease is neither lost nor being released, by what is known.
func (l *Lease) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == held
}

// Alive reports whether the lease can be built upon: it is held, and its deadline has not
// passed.
func (l *Lease) Alive(now time.Time) bool { return l.Remaining(now) > 0 }

// Remaining is how long the lease can be relied upon, 0 after its end.
func (l *Lease) Remaining(now time.Time) time.Duration {
	if !l.Held() {
		return 0
	}
	return max(l.Left(now), 0)
}

// Left is how long the lease lasts by the clocks, whatever the phase; negative after that.
func (l *Lease) Left(now time.Time) time.Duration {
	return l.deadline.left(l.dog.cfg.Start, now)
}

// Expired reports whether either clock is at the deadline.
func (l *Lease) Expired(now time.Time) bool { return l.Left(now) <= 0 }
