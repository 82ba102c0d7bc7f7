package wakeup

import (
	"sync/atomic"
	"time"
)

// linger is how long a subscription outlives its last user, unless it was that of a lane: a
// channel that nobody else will want.
const linger = 5 * time.Second

// Subscription is one to the messages about one topic. It is shared by its users, and safe for
// concurrent use.
//
//	asked ─ Redis confirms ─▶ confirmed ─ the connection is lost, or the server drops it ─▶ asked
//	either ─ the connection is closed, or nobody has used it for a while ─▶ dead
//
// Only become changes the state.
type Subscription struct {
	connection *connection
	about      Topic
	channel    string
	state      atomic.Uint32

	// Guarded by the connection.
	users int
	since time.Time // when the last user went
}

const (
	asked uint32 = iota
	confirmed
	dead
)

func (s *Subscription) become(state uint32) (before uint32) { return s.state.Swap(state) }

// Confirmed reports whether messages arrive.
func (s *Subscription) Confirmed() bool { return s.state.Load() == confirmed }

// Dead reports whether no message will arrive any more: who waits needs another subscription.
func (s *Subscription) Dead() bool { return s.state.Load() == dead }

// Unsubscribe gives the subscription back, once for each Subscribe. Of nil it does nothing.
func (s *Subscription) Unsubscribe() {
	if s == nil {
		return
	}
	c := s.connection
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users--
	s.since = time.Now()
	c.used = s.since
}

// stale reports whether nobody has used it for a while. The connection is locked.
func (s *Subscription) stale(now time.Time) bool {
	return s.users == 0 && (s.about.Lane != "" || now.Sub(s.since) >= linger)
}

// unheard reports whether somebody wants it and the server has not confirmed it. The
// connection is locked.
func (s *Subscription) unheard() bool { return s.users > 0 && !s.Confirmed() }
