package queue

import "time"

// Subscription receives the messages of a key. Confirmed and Dead lock no mutex.
type Subscription interface {
	Confirmed() bool // reports whether messages arrive
	Dead() bool      // reports whether no more messages will arrive, so that another subscription is needed
	Unsubscribe()    // releases the subscription
}

// releaseSubscription releases s, if it is not nil. The caller holds no mutex.
func releaseSubscription(s Subscription) {
	if s != nil {
		s.Unsubscribe()
	}
}

const (
	// echoWindow is how long a message may arrive after the answer to its command.
	echoWindow = 50 * time.Millisecond

	// echoWait is how long the message of an unanswered command is expected.
	echoWait = time.Second
)

// echo recognizes the echo of a command: the message that a command of this process publishes and that
// this process receives itself. No waiter has to wake for an echo. If the echo never arrives, another
// message may be mistaken for it. The head then finds the free lock only at its next poll.
//
//	none ── expect ──▶ expected ── recordAnswer ──▶ expected, for echoWindow
//	  ▲                   │
//	  └── match, or clear ┘
type echo struct {
	until time.Time // the next message that arrives before this time is the echo; zero: no echo is expected
}

// expect records that a command that publishes a message is about to be sent.
func (e *echo) expect(now time.Time) { e.until = now.Add(echoWait) }

// recordAnswer records that the command was answered, if its echo is expected.
func (e *echo) recordAnswer(now time.Time) {
	if !e.until.IsZero() {
		e.until = now.Add(echoWindow)
	}
}

// recordRelease records the end of a release. notified shows whether the release published a message.
func (e *echo) recordRelease(notified int, now time.Time) {
	if notified == Unpublished {
		e.clear()
		return
	}
	e.recordAnswer(now)
}

// clear records that no echo is expected.
func (e *echo) clear() { e.until = time.Time{} }

// match reports whether a message that arrives now is the echo. After match no echo is expected.
func (e *echo) match(now time.Time) bool {
	until := e.until
	e.clear()
	return now.Before(until)
}

// These constants limit the attempts that messages on one channel may cause: paceBurst at once and then
// one per paceInterval. So a client that publishes messages without end has a limited effect. Releases do
// not reach the limit. Either they send fewer messages, or an attempt succeeds, which resets the count.
const (
	paceInterval = 5 * time.Millisecond
	paceBurst    = 50
)

// pace limits the rate of attempts that messages cause. A nil pace has counted no message.
type pace struct {
	spent time.Time // the intervals up to this time are used
	until time.Time // the head waits until then; zero: the head need not wait
}

// countMessage counts a message. After the burst the head waits for the next interval.
func (p *pace) countMessage(now time.Time) {
	if saved := now.Add(-paceBurst * paceInterval); p.spent.Before(saved) {
		p.spent = saved
	}
	p.spent, p.until = p.spent.Add(paceInterval), time.Time{}
	if p.spent.After(now) {
		p.until = p.spent
	}
}

// left returns how long the head has to wait; 0 if it need not wait.
func (p *pace) left(now time.Time) time.Duration {
	if p == nil {
		return 0
	}
	return max(p.until.Sub(now), 0)
}

// cancelWait cancels the wait of the head and keeps the count.
func (p *pace) cancelWait() {
	if p != nil {
		p.until = time.Time{}
	}
}
