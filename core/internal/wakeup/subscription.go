package wakeup

import (
	"sync"
	"sync/atomic"
	"time"
)

// linger is the time for which a subscription stays after its last user has left. The subscription of a lane does not
// stay, because no other waiter will use its channel.
const linger = 5 * time.Second

// Subscription is a subscription to the messages about one topic. Its users share it. It is safe for
// concurrent use.
//
//	asked ─ Redis confirms ─▶ confirmed ─ the connection is lost, or the server drops it ─▶ asked
//	either ─ the connection is closed, or no waiter used it for a while ─▶ dead
//
// A subscription of a channel whose messages arrive already begins as confirmed. Only become changes the state.
type Subscription struct {
	about   Topic
	channel string
	state   atomic.Uint32

	mu    *sync.Mutex // the mutex of its connection; guards the rest
	users int
	since time.Time // when the last user released it
}

const (
	asked uint32 = iota
	confirmed
	dead
)

func (s *Subscription) become(state uint32) (before uint32) { return s.state.Swap(state) }

// Confirmed reports whether messages arrive.
func (s *Subscription) Confirmed() bool { return s.state.Load() == confirmed }

// Dead reports whether no more messages will arrive, so that a waiter needs another subscription.
func (s *Subscription) Dead() bool { return s.state.Load() == dead }

// Unsubscribe releases the subscription, once for each Subscribe. On nil it does nothing.
func (s *Subscription) Unsubscribe() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.since = time.Now()
}

// stale reports whether the subscription has had no user for linger, or belongs to a lane and has no user. The mutex is
// held.
func (s *Subscription) stale(now time.Time) bool {
	return s.users == 0 && (s.about.Lane != "" || now.Sub(s.since) >= linger)
}

// unconfirmed reports whether the subscription has users and the server has not confirmed it. The mutex is held.
func (s *Subscription) unconfirmed() bool { return s.users > 0 && !s.Confirmed() }
