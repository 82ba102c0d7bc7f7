package wakeup

// Connections is how many there are.
func (s *Subscriber) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.connections)
}

// Users is how many a subscription has.
func (s *Subscription) Users() int {
	s.connection.mu.Lock()
	defer s.connection.mu.Unlock()
	return s.users
}

// Linger is how long a subscription outlives its last user.
const Linger = linger
