package queue

import "time"

// What messages on one channel may cause: a burst of attempts at once, and then one
// in each interval. A publisher that does not stop is bounded by it; the messages of
// locks that are released are fewer, or an attempt succeeds, which ends the count.
const (
	paceInterval = 5 * time.Millisecond
	paceBurst    = 50
)

// pace spreads what messages cause.
type pace struct {
	spent time.Time // up to where the intervals are used up
	until time.Time // the head waits until then because of it; zero: it need not
}

// next counts a message: after the burst the head waits for the next interval.
func (p *pace) next(now time.Time) {
	if saved := now.Add(-paceBurst * paceInterval); p.spent.Before(saved) {
		p.spent = saved
	}
	p.spent, p.until = p.spent.Add(paceInterval), time.Time{}
	if p.spent.After(now) {
		p.until = p.spent
	}
}

// left is how long the head waits, 0 if it need not.
func (p *pace) left(now time.Time) time.Duration {
	if p == nil {
		return 0
	}
	return max(p.until.Sub(now), 0)
}

// drop ends the wait, but keeps the count.
func (p *pace) drop() {
	if p != nil {
		p.until = time.Time{}
	}
}
