package queue

import "time"

// Subscription receives the messages of a key.
type Subscription interface {
	Confirmed() bool // messages arrive; takes no mutex
	Dead() bool      // no more messages will arrive, so another subscription is needed; takes no mutex
	Unsubscribe()    // releases the subscription
}

// release releases a subscription. The caller holds no mutex.
func release(s Subscription) {
	if s != nil {
		s.Unsubscribe()
	}
}

const (
	// echoWindow is how long after the answer to a command its message may still arrive.
	echoWindow = 50 * time.Millisecond

	// echoWait is how long after a command was sent its message is expected.
	echoWait = time.Second
)

// echo recognizes the message of a command of this process, which comes back on the subscription of
// this process and carries no news. If that message never comes, echo may mistake another one for it,
// which costs the head one poll.
//
//	none ── expect ──▶ expected ── sent ──▶ expected, for echoWindow
//	  ▲                   │
//	  └── match, or none ─┘
type echo struct {
	until time.Time // the next message up to then is the echo; zero: none is expected
}

// expect records that a command with a message is about to be sent.
func (e *echo) expect(now time.Time) { e.until = now.Add(echoWait) }

// sent records that the command was answered, if one is expected.
func (e *echo) sent(now time.Time) {
	if !e.until.IsZero() {
		e.until = now.Add(echoWindow)
	}
}

// ended records the answer to a release, which may have sent no message.
func (e *echo) ended(notified int, now time.Time) {
	if notified == Unpublished {
		e.none()
		return
	}
	e.sent(now)
}

// none records that there was no message.
func (e *echo) none() { e.until = time.Time{} }

// match reports whether a message that arrives now is the echo. After that no echo is expected.
func (e *echo) match(now time.Time) bool {
	until := e.until
	e.none()
	return now.Before(until)
}

// The number of attempts that messages on one channel may cause: paceBurst at once and then one in
// each paceInterval. It limits the effect of a publisher that does not stop. Released locks send fewer
// messages, or an attempt succeeds, which resets the count.
const (
	paceInterval = 5 * time.Millisecond
	paceBurst    = 50
)

// pace spreads the attempts that messages cause. A nil pace has seen no message.
type pace struct {
	spent time.Time // the intervals up to this time are used
	until time.Time // the head waits until then; zero: it need not wait
}

// next counts a message. After the burst the head waits for the next interval.
func (p *pace) next(now time.Time) {
	if saved := now.Add(-paceBurst * paceInterval); p.spent.Before(saved) {
		p.spent = saved
	}
	p.spent, p.until = p.spent.Add(paceInterval), time.Time{}
	if p.spent.After(now) {
		p.until = p.spent
	}
}

// left returns how long the head waits, 0 if it need not.
func (p *pace) left(now time.Time) time.Duration {
	if p == nil {
		return 0
	}
	return max(p.until.Sub(now), 0)
}

// drop cancels the wait and keeps the count.
func (p *pace) drop() {
	if p != nil {
		p.until = time.Time{}
	}
}
