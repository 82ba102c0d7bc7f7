package lease

import "time"

// Acknowledge raises the deadline after a reply to a command that was sent at sent and set a TTL. The caller must have
// called Lower or Ask before the command, and not again since. If a release has begun or the deadline has passed,
// Acknowledge does nothing, because the reply came too late.
func (l *Lease) Acknowledge(sent time.Time, ttl time.Duration) {
	l.acknowledge(sent, ttl)
	l.watchdog.update(l)
}

func (l *Lease) acknowledge(sent time.Time, ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.applyReply(sent, ttl) {
		l.granted.confirmLower()
	}
}

// applyReply raises the deadline and reports whether the reply counts. The caller holds the mutex.
func (l *Lease) applyReply(sent time.Time, ttl time.Duration) bool {
	if l.phase != held || l.Expired(time.Now()) {
		return false
	}
	if l.trust.most > 0 {
		ttl = min(ttl, l.trust.most)
	}
	l.asked = false
	l.reserve = max(l.reserve-l.deadline.raise(l.watchdog.cfg.Start, DeadlineAfter(sent, ttl)), 0)
	return true
}

// Ask records that a command asks for a TTL. Redis may set that TTL even if the answer is lost. The holder calls Ask
// before every command that may raise the TTL, except renewals, which the watchdog records.
func (l *Lease) Ask(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted.ask(ttl)
	l.asked = true
}

// Longest returns the longest TTL that the lease may have in Redis.
func (l *Lease) Longest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.granted.longest
}

// Outlasts reports whether the lease in Redis may outlast the deadline by more than the margin, because a command that
// raises the TTL has no answer.
func (l *Lease) Outlasts(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked || now.Sub(l.watchdog.cfg.Start) < l.trust.landing
}

// grantedTTL records the longest TTL that Redis may have granted. That value rises before a command asks for a longer
// TTL. It falls only when Redis confirms a lower TTL and no other command asked for a TTL in between.
type grantedTTL struct {
	longest time.Duration
	lowerTo time.Duration // the lower TTL that was prepared; 0: none, or another command came later
}

func (g *grantedTTL) ask(ttl time.Duration) { g.longest, g.lowerTo = max(g.longest, ttl), 0 }

// lower records a command that sets the TTL, up or down.
func (g *grantedTTL) lower(ttl time.Duration) {
	g.ask(ttl)
	g.lowerTo = ttl
}

// confirmLower records that Redis confirmed the lower TTL, if one was prepared.
func (g *grantedTTL) confirmLower() {
	if g.lowerTo > 0 {
		g.longest, g.lowerTo = g.lowerTo, 0
	}
}

// Lower prepares a command that lowers the TTL in Redis, and lowers the local deadline at once, because a reply may never
// come. If a command without an answer may still be executed and raise the TTL again, or if the lease is not held, Lower
// does nothing and returns false. Only the reply, passed to Acknowledge, confirms the shorter TTL.
func (l *Lease) Lower(now time.Time, ttl time.Duration) bool {
	if !l.prepareLower(now, ttl) {
		return false
	}
	l.watchdog.update(l)
	return true
}

func (l *Lease) prepareLower(now time.Time, ttl time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != held || now.Sub(l.watchdog.cfg.Start) < l.trust.landing {
		return false
	}
	l.granted.lower(ttl)
	l.asked, l.reserve = true, 0
	if end := DeadlineAfter(now, ttl); l.Left(now) > end.Sub(now) {
		l.deadline.set(l.watchdog.cfg.Start, end)
	}
	return true
}

// longestReserve is the upper limit of [Reserve].
const longestReserve = 100 * time.Millisecond

// Reserve returns the time that a hand-off adds to a fixed lease in Redis. During that time the lease can be passed on
// to a holder that wants a lease of the same length.
func Reserve(ttl time.Duration) time.Duration {
	return min(ttl, longestReserve).Truncate(time.Millisecond)
}

// Pass passes the lease on to a waiter, which wants it for ttl from now on, renewed or fixed. It sends no command and
// reports whether the waiter has the lease. The waiter gets the whole length of a fixed lease, or at least half of the
// length of a renewed lease. The time that Redis confirmed beyond a fixed lease becomes the reserve.
//
// Pass does nothing and returns false if the time that Redis confirmed is too short for the waiter. It also returns
// false if Redis was asked for a longer lease than the waiter wants, because the longer lease would remain in Redis if
// this process ended. It also returns false while a command without an answer may still be executed, and while the
// client asks Redis whether Redis still has the claim.
//
// The answer to a renewal that was sent before moves no deadline, because the waiter has not sent it. The watchdog applies
// the new deadline when Watch or Renew is called for the waiter.
func (l *Lease) Pass(now time.Time, ttl time.Duration, renewed bool) bool {
	if l.watchdog.inDoubt(l) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != held || now.Sub(l.watchdog.cfg.Start) < l.trust.landing || l.granted.longest > ttl+Reserve(ttl) {
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
	l.deadline.set(l.watchdog.cfg.Start, now.Add(wanted))
	l.reserve = confirmed - wanted
	l.passes++
	return true
}

// RecordNoAnswer records that a command of this holder has no answer and may still be executed.
func (l *Lease) RecordNoAnswer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trust.landing = time.Since(l.watchdog.cfg.Start) + l.watchdog.cfg.Landing
}

// LimitTrust limits the TTLs that later replies can confirm, because a command that lowers the TTL may be executed at
// any time.
func (l *Lease) LimitTrust(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trust.most == 0 || ttl < l.trust.most {
		l.trust.most = ttl
	}
}
