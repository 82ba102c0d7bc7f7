package holding

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/resend"
)

// operations gives the operations of one holder their turns to send commands, because a re-entry and a release must not
// overtake each other. Renewals need no turn.
//
//	free ── begin ──▶ taken ── end, others wait ──▶ taken by the first of them
//	  ▲                 │
//	  └───── end ───────┘
//
// Most holders have one operation at a time. So the state of waiting operations is allocated only when an operation has
// to wait.
type operations struct {
	mu     sync.Mutex
	taken  bool
	others *others // nil: no operation has waited, and the operation with the turn does not yield
}

// others contains the operations that wait while one operation has the turn.
type others struct {
	queue      []turnSignal // in the order of the turns
	yield      func()       // makes the operation with the turn give it up; nil: that operation does not yield
	lastAnswer time.Time    // time of the last answer while operations waited
}

type turnSignal = chan struct{}

// ensureOthers returns the state of waiting operations. It allocates the state if necessary. The caller holds the mutex.
func (t *operations) ensureOthers() *others {
	if t.others == nil {
		t.others = &others{}
	}
	return t.others
}

// begin waits for the turn. If ctx is done first, begin returns the cause of ctx.
func (t *operations) begin(ctx context.Context) error {
	turn := t.requestTurn()
	if turn == nil {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		t.withdraw(turn)
		return context.Cause(ctx)
	}
}

// beginWithin waits for the turn within a time limit and returns the time limits of the operation. Usually they are
// the limits in s. If no other operation of the holder was answered during the wait, the operation also ends one backend
// timeout after the wait began. The error of beginWithin is errNoTurn, or an error of ctx.
func (t *operations) beginWithin(ctx context.Context, s resend.Span, timeout time.Duration) (resend.Span, error) {
	turn := t.requestTurn()
	if turn == nil {
		return s, nil
	}
	start := time.Now()
	timer := time.NewTimer(time.Until(t.limit(start, s, timeout)))
	defer timer.Stop()
	for {
		select {
		case <-turn:
			return t.remaining(start, s, timeout)
		case <-ctx.Done():
			t.withdraw(turn)
			return s, failure.Ended(ctx)
		case <-timer.C:
		}
		left := time.Until(t.limit(start, s, timeout))
		if left <= 0 {
			t.withdraw(turn)
			return s, errNoTurn
		}
		timer.Reset(left)
	}
}

// remaining returns the time limits of an operation that has waited since start and now has the turn. If the time limit
// of the wait has passed, remaining gives the turn back and returns errNoTurn.
func (t *operations) remaining(start time.Time, s resend.Span, timeout time.Duration) (resend.Span, error) {
	limit := t.limit(start, s, timeout)
	if !time.Now().Before(limit) {
		t.end()
		return s, errNoTurn
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ensureOthers().lastAnswer.Before(start) {
		s.End = limit
	}
	return s, nil
}

// limit returns the time until which an operation that has waited since start waits for its turn. Each answer to
// another operation postpones it.
func (t *operations) limit(start time.Time, s resend.Span, timeout time.Duration) time.Time {
	t.mu.Lock()
	limit := resend.Latest(start, t.ensureOthers().lastAnswer).Add(timeout)
	t.mu.Unlock()
	return resend.Earliest(limit, s.End)
}

// errNoTurn means that an operation of a holder could not begin in time.
const errNoTurn = failure.Text("an earlier command of this holder has no answer from redis yet")

// requestTurn takes the turn if it is free and returns nil. Otherwise it returns a channel that is closed when the turn
// comes.
func (t *operations) requestTurn() turnSignal {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.taken {
		t.taken = true
		return nil
	}
	others, turn := t.ensureOthers(), make(turnSignal)
	if others.yield != nil {
		others.yield()
	}
	others.queue = append(others.queue, turn)
	return turn
}

// withdraw removes a waiting operation. If that operation has just got the turn, withdraw gives the turn to the next
// operation.
func (t *operations) withdraw(turn turnSignal) {
	t.mu.Lock()
	others := t.ensureOthers()
	at := slices.Index(others.queue, turn)
	if at >= 0 {
		others.queue = slices.Delete(others.queue, at, at+1)
	}
	t.mu.Unlock()
	if at < 0 {
		t.end()
	}
}

// end gives the turn to the next operation that waits, if any.
func (t *operations) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.others == nil || !t.others.next() {
		t.taken = false
	}
}

// next gives the turn to the first operation that waits. It returns false if no operation waits.
func (o *others) next() bool {
	o.yield = nil
	if len(o.queue) == 0 {
		return false
	}
	close(o.queue[0])
	o.queue = o.queue[1:]
	return true
}

// recordAnswer records that the operation with the turn was answered, which extends the time limits of the operations
// that wait.
func (t *operations) recordAnswer() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.others != nil && len(t.others.queue) > 0 {
		t.others.lastAnswer = time.Now()
	}
}

// yieldTo registers a function that makes the operation with the turn give the turn up. The function is called as soon
// as another operation waits. If another operation already waits, yieldTo registers nothing and returns false.
func (t *operations) yieldTo(yield func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	others := t.ensureOthers()
	if len(others.queue) > 0 {
		return false
	}
	others.yield = yield
	return true
}
