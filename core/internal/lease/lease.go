package lease

import (
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// phase is the phase of a lease. It only goes forward, by [Lease.become].
//
//	held ── BeginRelease ──▶ releasing ── End ──▶ ended
//	  │                                             ▲
//	  ├── End ──────────────────────────────────────┘
//	  └── Lose, the deadline, Redis ──▶ lost
//
// A watched lease stays under watch while it is held or releasing, so that a caller that waits until no lease is left
// also waits for releases. The watchdog forgets a lease that is ended or lost.
type phase uint8

const (
	held      phase = iota
	releasing       // the last release has begun: renewals and losses no longer count
	ended           // released, left to expire, or passed on
	lost            // the deadline has passed, or Redis no longer has the claim
)

// Lease is a claim in Redis with the deadline until which the client can rely on it. Each lease has a new claim.
// [Watchdog.Open] initializes a Lease in memory that its holder provides. All methods are safe for concurrent use. Only
// Lose and CheckClock call the holder.
type Lease struct {
	redisstore.Claim

	watchdog *Watchdog
	holder   Holder
	deadline deadline
	schedule schedule // contains the inquiry; guarded by the mutex of the watchdog

	mu      sync.Mutex
	phase   phase
	asked   bool  // a command that asks for a TTL was sent, and no reply has confirmed a TTL since
	wishes  int32 // how many holds want it renewed
	cause   error // cause of the loss
	granted grantedTTL
	trust   trust
	reserve time.Duration // how much longer than until the deadline Redis confirmed the lease: see Pass
	passes  int           // how often the lease was passed on; a reply to a renewal that was sent before does not count
}

// trust limits the conclusions from replies after commands without an answer.
type trust struct {
	landing time.Duration // such a command may be executed until then, since the client's start; 0: there is none
	most    time.Duration // longest TTL that a reply can confirm; 0: no limit
}

// Holder is the owner of a lease.
type Holder interface {
	// Lost is called once when the lease was lost, in the goroutine that found the loss.
	Lost(cause error)

	// Renewed reports a renewal. err is its error, or nil if Redis renewed the lease. late is how much later than
	// planned the command was sent.
	Renewed(err error, late time.Duration)
}

// Open initializes l for a claim that Redis granted for ttl in reply to a command sent at sent. The lease is not under
// watch yet.
func (w *Watchdog) Open(l *Lease, claim redisstore.Claim, holder Holder, sent time.Time, ttl time.Duration) {
	l.Claim, l.watchdog, l.holder, l.granted.longest = claim, w, holder, ttl
	l.schedule.lease = l
	l.deadline.set(w.cfg.Start, DeadlineAfter(sent, ttl))
}

// Holder returns the holder.
func (l *Lease) Holder() Holder { return l.holder }

// become sets the phase to next if next can follow the present phase, and reports whether it did. The caller holds the
// mutex.
func (l *Lease) become(next phase) bool {
	if next <= l.phase || next == lost && l.phase != held {
		return false
	}
	l.phase = next
	return true
}

// BeginRelease begins the last release. From then on replies to renewals have no effect, and the lease cannot be lost.
// If it was lost before, BeginRelease returns the cause.
func (l *Lease) BeginRelease() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.become(releasing)
	return l.cause
}

// End ends the lease, unless it was lost. The watchdog forgets the lease.
func (l *Lease) End() {
	l.mu.Lock()
	l.become(ended)
	l.mu.Unlock()
	l.watchdog.forget(l)
}

// Lose records the loss of the lease, notifies the holder and returns true. If a release has begun or the lease was lost
// before, Lose does nothing and returns false.
func (l *Lease) Lose(cause error) bool {
	lost := l.lose(cause)
	if lost {
		l.notifyLoss()
	}
	return lost
}

// lose records the loss without notifying the holder. It reports whether the caller has to notify the holder.
func (l *Lease) lose(cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.become(lost) {
		return false
	}
	l.cause = cause
	return true
}

func (l *Lease) notifyLoss() {
	l.watchdog.forget(l)
	l.holder.Lost(l.Loss())
}

// CheckClock loses the lease if its deadline has passed, and returns the cause of the loss. It returns the cause even if
// another goroutine found the loss and is still in the call of Lost. Before the deadline CheckClock returns nil.
func (l *Lease) CheckClock(now time.Time) error {
	if !l.Expired(now) {
		return nil
	}
	l.Lose(l.watchdog.cfg.Over)
	return l.Loss()
}

// Loss returns the cause of the loss, or nil if the lease was not lost.
func (l *Lease) Loss() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Held reports whether the lease is neither lost nor ended nor being released, as far as the client knows.
func (l *Lease) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == held
}

// Alive reports whether the client can rely on the lease: it is held, and its deadline has not passed.
func (l *Lease) Alive(now time.Time) bool { return l.Remaining(now) > 0 }

// Remaining returns how long the client can still rely on the lease; 0 if it no longer can.
func (l *Lease) Remaining(now time.Time) time.Duration {
	if !l.Held() {
		return 0
	}
	return max(l.Left(now), 0)
}

// Left returns the time until the deadline by the clocks, in any phase. It is negative after the deadline.
func (l *Lease) Left(now time.Time) time.Duration {
	return l.deadline.left(l.watchdog.cfg.Start, now)
}

// Expired reports whether either clock has reached the deadline.
func (l *Lease) Expired(now time.Time) bool { return l.Left(now) <= 0 }
