package lease

import "time"

// Acknowledge raises the deadline after a reply to a command that was sent at sent and set a TTL. It does
// nothing once a release has begun or the deadline has passed, because a reply that comes then does not count.
// The command is the last one prepared by Lower or Ask.
func (l *Lease) Acknowledge(sent time.Time, ttl time.Duration) {
	l.acknowledge(sent, ttl)
	l.dog.update(l)
}

func (l *Lease) acknowledge(sent time.Time, ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.confirm(sent, ttl) {
		l.granted.lowered()
	}
}

// confirm raises the deadline, and reports whether the reply counts. The mutex is held.
func (l *Lease) confirm(sent time.Time, ttl time.Duration) bool {
	if l.phase != held || l.Expired(time.Now()) {
		return false
	}
	if l.trust.most > 0 {
		ttl = min(ttl, l.trust.most)
	}
	l.asked = false
	l.reserve = max(l.reserve-l.deadline.raise(l.dog.cfg.Start, DeadlineAfter(sent, ttl)), 0)
	return true
}

// Ask notes that a TTL is asked for, which Redis may grant whatever it answers. Call it before every command
// that may raise the TTL. Renewals call it themselves.
func (l *Lease) Ask(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted.ask(ttl)
	l.asked = true
}

// Longest returns the longest TTL that Redis may still have.
func (l *Lease) Longest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.granted.longest
}

// Outlasts reports whether Redis may have the lease after the deadline for longer than the margin, because a
// command that raises the TTL has no answer.
func (l *Lease) Outlasts(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked || now.Sub(l.dog.cfg.Start) < l.trust.landing
}

// granted is the TTL that Redis may have granted. A command that asks for more raises it, before it is sent. It
// falls only when Redis has confirmed a lower TTL, and nothing was asked for in between.
type granted struct {
	longest time.Duration
	lowerTo time.Duration // the lower TTL that was prepared; 0: none was, or another command came since
}

func (g *granted) ask(ttl time.Duration) { g.longest, g.lowerTo = max(g.longest, ttl), 0 }

// lower notes a TTL that is set whatever the present one is.
func (g *granted) lower(ttl time.Duration) {
	g.ask(ttl)
	g.lowerTo = ttl
}

// lowered notes that Redis has confirmed the lower TTL, if one was prepared.
func (g *granted) lowered() {
	if g.lowerTo > 0 {
		g.longest, g.lowerTo = g.lowerTo, 0
	}
}

// Lower prepares to lower the TTL in Redis, and reports whether that is possible: not while a command without an
// answer may still be executed and raise it again. It lowers the local deadline at once, because a reply may
// never come. Only the reply, with Acknowledge, shows that Redis has the shorter TTL.
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
	l.granted.lower(ttl)
	l.asked, l.reserve = true, 0
	if end := DeadlineAfter(now, ttl); l.Left(now) > end.Sub(now) {
		l.deadline.set(l.dog.cfg.Start, end)
	}
	return true
}

// longestReserve bounds [Reserve].
const longestReserve = 100 * time.Millisecond

// Reserve returns how much longer than a fixed lease a hand-off asks Redis for. For that time the lease can be
// passed on to a holder that wants the same lease.
func Reserve(ttl time.Duration) time.Duration {
	return min(ttl, longestReserve).Truncate(time.Millisecond)
}

// Pass gives the lease to the next holder, which wants it for ttl from now on, renewed or fixed. It sends
// nothing, and reports whether the next holder has the lease. The next holder gets the whole length of a fixed
// lease, and at least half of a renewed one. The rest that Redis has confirmed beyond a fixed lease becomes the
// reserve.
//
// Pass refuses if Redis was asked for a longer lease than the next holder wants, because that lease would
// outlive the process of the next holder. It also refuses while a command without an answer may be executed, and
// while it is in doubt whether Redis still has the lease.
//
// The watchdog looks at the new deadline when the next holder calls Watch or Renew.
func (l *Lease) Pass(now time.Time, ttl time.Duration, renewed bool) bool {
	if l.dog.doubts(l) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != held || now.Sub(l.dog.cfg.Start) < l.trust.landing || l.granted.longest > ttl+Reserve(ttl) {
		return false
	}
	confirmed := l.Left(now) + l.reserve
	wanted, least := confirmed, ttl/2
	if !renewed {
		wanted = DeadlineAfter(now, ttl).Sub(now)
		least = wanted
	}
	if confirmed < least {
		return false
	}
	l.deadline.set(l.dog.cfg.Start, now.Add(wanted))
	l.reserve = confirmed - wanted
	return true
}

// Unanswered notes that a command of this holder has no answer and may still be executed.
func (l *Lease) Unanswered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trust.landing = time.Since(l.dog.cfg.Start) + l.dog.cfg.Landing
}

// BelieveAtMost caps the TTLs that later replies confirm, because a command that lowers the TTL may be executed
// at any time.
func (l *Lease) BelieveAtMost(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trust.most == 0 || ttl < l.trust.most {
		l.trust.most = ttl
	}
}
