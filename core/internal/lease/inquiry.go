package lease

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// inquiry schedules the questions to Redis about a lease that is in doubt. At most one question is on its way. Between
// two questions there is a pause. A doubt that arises while a question is on its way causes one more question. So does a
// question that was refused or got no answer.
//
//	quiet ── Doubt ──▶ waiting ── pause ends ──▶ asking ── Doubt ──▶ askAgain
//	  ▲                  ▲  ▲                    │    │                 │
//	  │                  │  └────── failed ──────┘    │                 │
//	  └──────────────────│────── answered ────────────┘                 │
//	                     └────── answered, or failed ───────────────────┘
//
// The watchdog does not ask about a lease that is not held any more. All times count from the start of the client.
type inquiry struct {
	state inquiryState
	pause time.Duration // after the last question; it grows while questions fail
	from  time.Duration // from then on the next question may be sent together with questions about other leases
	at    time.Duration // then the next question is sent, even if it is the only one
}

type inquiryState uint8

const (
	quiet inquiryState = iota
	waiting
	asking
	askAgain
)

// The first and the longest pause between two questions about one lease. The pause doubles with every question that
// fails, so that an outage does not cause a flood of questions.
const (
	questionPause    = 20 * time.Millisecond
	maxQuestionPause = 5 * time.Second
)

// Doubt asks Redis in the background whether the claim still holds, and repeats the question until Redis answers. If the
// claim does not hold, the lease is lost. If the lease is not under watch yet, the question waits until it is.
func (l *Lease) Doubt() { l.watchdog.doubt(l) }

func (w *Watchdog) doubt(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.schedule.inquiry.recordDoubt() {
		w.replan(&l.schedule, time.Now())
	}
}

// inDoubt reports whether the client still doubts that Redis has the claim, because Redis has answered no question
// since the doubt arose.
func (w *Watchdog) inDoubt(l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.schedule.inquiry.state != quiet
}

// recordDoubt records a doubt and reports whether the caller has to plan a question.
func (i *inquiry) recordDoubt() (plan bool) {
	switch i.state {
	case quiet:
		i.state = waiting
		return true
	case asking:
		i.state = askAgain
	}
	return false
}

// due reports whether to send the next question now. others means that questions about other leases are sent now.
func (i *inquiry) due(now time.Duration, others bool) bool {
	return i.state == waiting && (i.at <= now || others && i.from <= now)
}

// finish records the end of a question and plans the pause before the next question.
func (i *inquiry) finish(now time.Duration, failed bool) {
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

// askBatch asks Redis about leases that one script can check. It applies all verdicts before it notifies any holder.
func (w *Watchdog) askBatch(ctx context.Context, batch []*Lease) {
	leases, claims := filterHeld(batch)
	if len(leases) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	verdicts := w.cfg.Renewer.Renew(ctx, claims, 0)
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the client was closed: a question that was cut short has no answer
	}
	var over []*Lease
	for i, l := range leases {
		v := verdicts[i]
		w.finishQuestion(l, v.Err != nil)
		if v.Err == nil && !v.Held && l.lose(w.cfg.Gone) {
			over = append(over, l)
		}
	}
	for _, l := range over {
		l.notifyLoss()
	}
}

// filterHeld returns the leases that are still held, and their claims.
func filterHeld(batch []*Lease) (leases []*Lease, claims []redisstore.Claim) {
	for _, l := range batch {
		if l.Held() {
			leases, claims = append(leases, l), append(claims, l.Claim)
		}
	}
	return leases, claims
}

// finishQuestion records the end of a question about l and plans the next one if necessary.
func (w *Watchdog) finishQuestion(l *Lease, failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	l.schedule.inquiry.finish(now.Sub(w.cfg.Start), failed)
	w.replan(&l.schedule, now)
}
