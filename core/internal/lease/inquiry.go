package lease

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// inquiry asks Redis about a lease that is in doubt. One question is on its way at a time, after a pause since
// the last one. A doubt that is raised while a question is on its way leads to one more question after it. So
// does a question that was refused or has no answer.
//
//	quiet ── Doubt ──▶ waiting ── pause ends ──▶ asking ── Doubt ──▶ askAgain
//	  ▲                  ▲  ▲                    │    │                 │
//	  │                  │  └────── failed ──────┘    │                 │
//	  └──────────────────│────── answered ────────────┘                 │
//	                     └────── answered, or failed ───────────────────┘
//
// Redis is not asked about a lease that is not held any more. Times are since the client's start.
type inquiry struct {
	state inquiryState
	pause time.Duration // after the last question; it grows while questions fail
	from  time.Duration // when the next question may travel with questions about other leases
	at    time.Duration // when it is sent, also alone
}

type inquiryState uint8

const (
	quiet inquiryState = iota
	waiting
	asking
	askAgain
)

// The pause between two questions about one lease. It doubles with every question that fails, so
// that an outage does not cause a flood of questions.
const (
	questionPause    = 20 * time.Millisecond
	maxQuestionPause = 5 * time.Second
)

// Doubt asks Redis, in the background, whether the claim still holds, until there is an answer. If it does not
// hold, the lease is lost. If the lease is not under watch yet, Redis is asked when it is.
func (l *Lease) Doubt() { l.dog.doubt(l) }

func (w *Watchdog) doubt(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.schedule.inquiry.doubted() {
		w.replan(&l.schedule, time.Now())
	}
}

// doubts reports whether there is a doubt without an answer.
func (w *Watchdog) doubts(l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.schedule.inquiry.state != quiet
}

// doubted notes a doubt, and reports whether a question has to be planned for it.
func (i *inquiry) doubted() (plan bool) {
	switch i.state {
	case quiet:
		i.state = waiting
		return true
	case asking:
		i.state = askAgain
	}
	return false
}

// due reports whether the next question is sent now. others reports whether questions about other leases are.
func (i *inquiry) due(now time.Duration, others bool) bool {
	return i.state == waiting && (i.at <= now || others && i.from <= now)
}

func (i *inquiry) asked(now time.Duration, failed bool) {
	if failed {
		i.pause = min(max(2*i.pause, questionPause), maxQuestionPause)
	} else {
		i.pause = questionPause
	}
	i.from, i.at = now+i.pause-i.pause/jitter.Spread, now+jitter.Of(i.pause)
	if failed || i.state == askAgain {
		i.state = waiting
	} else {
		i.state = quiet
	}
}

// askBatch asks about leases that one script can ask about. It applies the verdicts to all of them before it
// notifies any holder.
func (w *Watchdog) askBatch(ctx context.Context, batch []*Lease) {
	leases, claims := stillHeld(batch)
	if len(leases) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	verdicts := w.cfg.Renewer.Renew(ctx, claims, 0)
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the client has ended: a question that was cut short has no answer
	}
	var over []*Lease
	for i, l := range leases {
		v := verdicts[i]
		w.asked(l, v.Err != nil)
		if v.Err == nil && !v.Held && l.lose(w.cfg.Gone) {
			over = append(over, l)
		}
	}
	for _, l := range over {
		l.announce()
	}
}

// stillHeld returns the leases that are still held, and their claims.
func stillHeld(batch []*Lease) (leases []*Lease, claims []redisstore.Claim) {
	for _, l := range batch {
		if l.Held() {
			leases, claims = append(leases, l), append(claims, l.Claim)
		}
	}
	return leases, claims
}

// asked ends a question about l, and plans the next one if there has to be one.
func (w *Watchdog) asked(l *Lease, failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	l.schedule.inquiry.asked(now.Sub(w.cfg.Start), failed)
	w.replan(&l.schedule, now)
}
