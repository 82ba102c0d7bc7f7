package lease

import "time"

// Acknowledge raises the deadline after a reply to a command that was sent at sent and set
// a TTL. It does nothing once a release has begun, or the deadline has passed: a reply that
// comes then is no success. The command is the one that was prepared last, by Lower or Ask.
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

// Ask notes that a TTL is asked for, which Redis may grant, whatever it answers. It comes
// before the command, and before every command that may raise the TTL; renewals do so
// themselves.
func (l *Lease) Ask(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted.ask(ttl)
	l.asked = true
}

// Longest is the longest TTL that Redis may still have been given.
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

// granted is what TTL Redis may have given. What commands ask for raises it, before they are
// sent; it falls only when Redis has confirmed a TTL that was lowered, and nothing was asked
// for in between.
type granted struct {
	longest time.Duration
	lowerTo time.Duration // what the TTL was prepared to be lowered to; 0: it was not, or another command came since
}

func (g *granted) ask(ttl time.Duration) { g.longest, g.lowerTo = max(g.longest, ttl), 0 }

// lower notes a TTL that is to be set whatever there is.
func (g *granted) lower(ttl time.Duration) {
	g.ask(ttl)
	g.lowerTo = ttl
}

// lowered takes in that Redis has done so, if that was prepared.
func (g *granted) lowered() {
	if g.lowerTo > 0 {
		g.longest, g.lowerTo = g.lowerTo, 0
	}
}

// Lower prepares to lower the TTL in Redis, and reports whether that may be: not while a
// command without an answer may land and raise it again. The local deadline comes first,
// now, because a reply may never come; that Redis has a shorter TTL is known by the reply only,
// with Acknowledge.
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

// Reserve returns for how much longer than a fixed lease Redis is asked when the lock is handed off. So
// much later the lease can still be passed on to a holder that wants the same.
func Reserve(ttl time.Duration) time.Duration {
	return min(ttl, longestReserve).Truncate(time.Millisecond)
}

// Pass gives the lease to the next holder, which wants it for ttl, renewed or fixed, from now on. It sends
// nothing, and reports whether it has done so. The next holder gets the whole length of a fixed lease, and
// at least half of a renewed one. What Redis has confirmed beyond a fixed lease becomes the reserve.
//
// Pass refuses if Redis was asked for a longer lease than the next holder wants, because that lease would
// outlive its process. It also refuses while a command without an answer may land, and while there are
// doubts whether Redis still has the lease.
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

// Unanswered notes that a command of this holder has no answer and may still land.
func (l *Lease) Unanswered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trust.landing = time.Since(l.dog.cfg.Start) + l.dog.cfg.Landing
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
