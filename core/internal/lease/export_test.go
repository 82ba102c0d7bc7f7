package lease

import "time"

// Landing returns the time until which commands without an answer may be executed; zero if there are none.
func (l *Lease) Landing() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trust.landing == 0 {
		return time.Time{}
	}
	return l.watchdog.cfg.Start.Add(l.trust.landing)
}
