package queue

import "time"

const (
	// echoWindow is how long after a command was answered its message may still be on
	// the way.
	echoWindow = 50 * time.Millisecond

	// echoWait is how long after a command was sent its message is expected.
	echoWait = time.Second
)

// echo is the message of a command of our own, which comes back on our own subscription
// and means nothing to us. If it never comes, another one that is taken for it costs the
// head one poll.
//
//	none ── expect ──▶ expected ── sent ──▶ expected, for echoWindow
//	  ▲                   │
//	  └── is, or none was ┘
type echo struct {
	until time.Time // the next message up to then is the echo; zero: none is expected
}

// expect notes that a command with a message is about to be sent.
func (e *echo) expect(now time.Time) { e.until = now.Add(echoWait) }

// sent notes that the command was answered, if one is expected.
func (e *echo) sent(now time.Time) {
	if !e.until.IsZero() {
		e.until = now.Add(echoWindow)
	}
}

// ended is sent for a release, if that has sent a message.
func (e *echo) ended(notified int, now time.Time) {
	if notified == Unpublished {
		e.none()
		return
	}
	e.sent(now)
}

// none notes that there was no message.
func (e *echo) none() { e.until = time.Time{} }

func (e *echo) is(now time.Time) bool {
	until := e.until
	e.none()
	return now.Before(until)
}
