package lease

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// inquiry is whether Redis is being asked for a lease that is in doubt. One question is on
// its way at a time; what raises doubts meanwhile leads to one more after it.
//
//	quiet ── Doubt ──▶ asking ── Doubt ──▶ askAgain
//	  ▲                │    ▲                 │
//	  └─── answered ───┘    └── next question ┘
type inquiry struct {
	state     inquiryState
	notBefore time.Duration // when the next question may be sent, since the client's start
}

type inquiryState uint8

const (
	quiet inquiryState = iota
	asking
	askAgain
)

// questionPause is the time between two questions about one lease.
const questionPause = 20 * time.Millisecond

// Doubt has Redis asked, in the background, whether the claim still holds. If it does not,
// the lease is lost.
func (l *Lease) Doubt() {
	if l.doubted() {
		l.dog.cfg.Spawn(l.askUntilSure)
	}
}

// doubted notes a doubt, and reports whether nobody asks yet.
func (l *Lease) doubted() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first = l.inquiry.state == quiet
	if first {
		l.inquiry.state = asking
	} else {
		l.inquiry.state = askAgain
	}
	return first
}

// askUntilSure asks until no doubt has come since the last question was sent, or the lease
// is over.
func (l *Lease) askUntilSure(ctx context.Context) {
	for {
		if pause := l.questionIn(); pause > 0 && jitter.Sleep(ctx, pause) != nil {
			return
		}
		if l.beginQuestion() {
			l.ask(ctx)
		}
		if l.sure() {
			return
		}
	}
}

// questionIn is how long the next question has to wait.
func (l *Lease) questionIn() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inquiry.notBefore - time.Since(l.dog.cfg.Start)
}

// beginQuestion answers all doubts up to now by the question that follows, and reports
// whether there is still something to ask about.
func (l *Lease) beginQuestion() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inquiry = inquiry{state: asking, notBefore: time.Since(l.dog.cfg.Start) + questionPause}
	return l.phase == held
}

// sure ends the asking, unless doubts have come meanwhile.
func (l *Lease) sure() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inquiry.state == askAgain && l.phase == held {
		return false
	}
	l.inquiry.state = quiet
	return true
}

// ask asks once.
func (l *Lease) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.dog.cfg.Timeout)
	defer cancel()
	v := l.dog.cfg.Renewer.Renew(ctx, []redisstore.Claim{l.Claim}, 0)[0]
	if v.Err == nil && !v.Held && !errors.Is(ctx.Err(), context.Canceled) {
		l.Lose(l.dog.cfg.Gone)
	}
}
