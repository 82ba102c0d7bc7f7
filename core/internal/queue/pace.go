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
}

// next is when the next one may be: zero for at once.
func (p *pace) next(now time.Time) (at time.Time) {
	if saved := now.Add(-paceBurst * paceInterval); p.spent.Before(saved) {
		p.spent = saved
	}
	p.spent = p.spent.Add(paceInterval)
	if p.spent.After(now) {
		return p.spent
	}
	return time.Time{}
}
