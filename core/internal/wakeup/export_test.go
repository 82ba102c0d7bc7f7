package wakeup

// Connections returns the number of connections.
func (s *Subscriber) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.connections)
}

// Users returns the number of users of a subscription.
func (s *Subscription) Users() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users
}

// Linger is the time for which a subscription outlives its last user.
const Linger = linger
