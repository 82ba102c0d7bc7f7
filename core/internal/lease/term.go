package lease

import "time"

// Acknowledge raises the deadline after a reply to a command that was sent at sent and set
// a TTL. It does nothing once a release has begun, or the deadline has passed: a reply that
// comes then is no success.
func (l *Lease) Acknowledge(sent time.Time, ttl time.Duration) {
	l.confirm(sent, ttl)
	l.dog.update(l)
}

// confirm is Acknowledge without a new look at the schedule.
func (l *Lease) confirm(sent time.Time, ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != held || l.Expired(time.Now()) {
		return
	}
	if l.trust.most > 0 {
		ttl = min(ttl, l.trust.most)
	}
	l.deadline.raise(l.dog.cfg.Start, DeadlineAfter(sent, ttl))
}

// Ask notes that a TTL is asked for, which Redis may grant.
func (l *Lease) Ask(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, ttl)
}

// Longest is the longest TTL that Redis may still have been given.
func (l *Lease) Longest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.longest
}

// Lower prepares to lower the TTL in Redis, and reports whether that may be: not while a
// command without an answer may land and raise it again. The local deadline comes first,
// now, because a reply may never come.
func (l *Lease) Lower(now time.Time, ttl time.Duration) bool {
	if !l.lowered(now, ttl) {
		return false
	}
	l.dog.update(l)
	return true
}

func (l *Lease) lowered(now time.Time, ttl time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != held || now.Sub(l.dog.cfg.Start) < l.trust.landing {
		return false
	}
	l.longest = ttl
	if end := DeadlineAfter(now, ttl); l.Left(now) > end.Sub(now) {
		l.deadline.set(l.dog.cfg.Start, end)
	}
	return true
}

// Unanswered notes that a command of this holder has no answer and may still land.
func (l *Lease) Unanswered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trust.landing = time.Since(l.dog.cfg.Start) + l.dog.cfg.Landing
}

// Landing is until when commands without an answer may land, zero if there are none.
func (l *Lease) Landing() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trust.landing == 0 {
		return time.Time{}
	}
	return l.dog.cfg.Start.Add(l.trust.landing)
}

// BelieveAtMost caps the TTLs that replies are taken to confirm, from now on: a command
// that lowers the TTL may land at any time.
func (l *Lease) BelieveAtMost(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trust.most == 0 || ttl < l.trust.most {
		l.trust.most = ttl
	}
}
