package core

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// operations are those of one holder on the wire, and whose turn it is: re-entry and release must
// not overtake each other. Renewals are not behind them.
//
//	free ── begin ──▶ taken ── end, others wait ──▶ taken by the first of them
//	  ▲                 │
//	  └───── end ───────┘
//
// Most holders have one operation at a time: what is about several is made when they meet.
type operations struct {
	mu     sync.Mutex
	taken  bool
	others *others // nil: no two have met, and none yields
}

// others are the operations beside the one that has the turn.
type others struct {
	queue []waiting // operations that wait for their turn
	yield func()    // has the writer that has the turn give it up; nil for other operations
	heard time.Time // when an operation was last answered, while others waited
}

type waiting = chan struct{}

// beside are the others, made when first needed. The mutex is held.
func (t *operations) beside() *others {
	if t.others == nil {
		t.others = &others{}
	}
	return t.others
}

func (t *operations) begin(ctx context.Context) error {
	turn := t.line()
	if turn == nil {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		t.forgo(turn)
		return context.Cause(ctx)
	}
}

// beginBy is begin for an operation that has a time, and gives what is left of it: behind
// commands without an answer it has no more than the timeout in all. Its error is that of
// ctx, or errNoTurn.
func (t *operations) beginBy(ctx context.Context, s span, timeout time.Duration) (span, error) {
	turn := t.line()
	if turn == nil {
		return s, nil
	}
	start := time.Now()
	timer := time.NewTimer(time.Until(t.limit(start, s, timeout)))
	defer timer.Stop()
	for {
		select {
		case <-turn:
			return t.spanAfter(start, s, timeout)
		case <-ctx.Done():
			t.forgo(turn)
			return s, contextCause(ctx)
		case <-timer.C:
		}
		left := time.Until(t.limit(start, s, timeout))
		if left <= 0 {
			t.forgo(turn)
			return s, errNoTurn
		}
		timer.Reset(left)
	}
}

// spanAfter is what is left to an operation that began to wait for its turn at start, and
// has it.
func (t *operations) spanAfter(start time.Time, s span, timeout time.Duration) (span, error) {
	limit := t.limit(start, s, timeout)
	if !time.Now().Before(limit) {
		t.end()
		return s, errNoTurn
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.beside().heard.Before(start) {
		s.end = limit
	}
	return s, nil
}

// limit is up to when an operation waits for its turn that began to at start: as long as
// others have theirs and are answered.
func (t *operations) limit(start time.Time, s span, timeout time.Duration) time.Time {
	t.mu.Lock()
	limit := maxTime(start, t.beside().heard).Add(timeout)
	t.mu.Unlock()
	if s.end.IsZero() {
		return limit
	}
	return minTime(limit, s.end)
}

// errNoTurn says that an operation of a holder could not begin in time.
var errNoTurn = errors.New("an earlier command of this holder has no answer from redis yet")

// line takes the turn if nobody has it, and gives nil; else it gives what is closed when
// the turn comes.
func (t *operations) line() waiting {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.taken {
		t.taken = true
		return nil
	}
	others, turn := t.beside(), make(waiting)
	if others.yield != nil {
		others.yield()
	}
	others.queue = append(others.queue, turn)
	return turn
}

// forgo takes an operation out of those that wait, or passes on what was given to it in
// this instant.
func (t *operations) forgo(turn waiting) {
	t.mu.Lock()
	others := t.beside()
	at := slices.Index(others.queue, turn)
	if at >= 0 {
		others.queue = slices.Delete(others.queue, at, at+1)
	}
	t.mu.Unlock()
	if at < 0 {
		t.end()
	}
}

// end passes the turn on.
func (t *operations) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.others == nil || !t.others.next() {
		t.taken = false
	}
}

// next gives the turn to the first that waits, and reports whether there was one.
func (o *others) next() bool {
	o.yield = nil
	if len(o.queue) == 0 {
		return false
	}
	close(o.queue[0])
	o.queue = o.queue[1:]
	return true
}

// answered notifies those who wait that the operation that has the turn was answered.
func (t *operations) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.others != nil && len(t.others.queue) > 0 {
		t.others.heard = time.Now()
	}
}

// yieldTo has an operation that has the turn stopped by yield as soon as another one waits.
// It reports whether none does yet.
func (t *operations) yieldTo(yield func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	others := t.beside()
	if len(others.queue) > 0 {
		return false
	}
	others.yield = yield
	return true
}
