package lease

import (
	"sync/atomic"
	"time"
)

// deadline is the moment from which a holder must not believe in its lease any more. It is
// kept on two clocks, and the earlier one counts: the monotonic clock does not step, but
// stands still while a virtual machine is suspended; the wall clock goes on.
type deadline struct {
	mono atomic.Int64 // nanoseconds since the client's start
	wall atomic.Int64 // Unix nanoseconds
}

// margin is what a holder keeps between its own deadline and the one in Redis: the drift of
// two clocks over the lease, and the granularity of both. Never more than half the lease,
// so that leases of a few milliseconds are usable.
func margin(ttl time.Duration) time.Duration {
	return min(ttl/100+granularity, ttl/2)
}

// granularity is how far two looks at clocks may be apart.
const granularity = 2 * time.Millisecond

// DeadlineAfter is the deadline that a lease of length ttl gives which was sent at sent.
func DeadlineAfter(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - margin(ttl))
}

// Expired reports whether, by either clock, a lease of length ttl that was sent at sent
// must not be believed in any more.
func Expired(sent time.Time, ttl time.Duration, now time.Time) bool {
	end := DeadlineAfter(sent, ttl)
	return !now.Before(end) || now.UnixNano() >= end.UnixNano()
}

// set moves the deadline to t, up or down.
func (d *deadline) set(start, t time.Time) {
	d.mono.Store(int64(t.Sub(start)))
	d.wall.Store(t.UnixNano())
}

// raise moves the deadline to t if that is later, and gives by how much.
func (d *deadline) raise(start, t time.Time) time.Duration {
	by := t.Sub(start) - time.Duration(d.mono.Load())
	if by > 0 {
		d.set(start, t)
	}
	return max(by, 0)
}

// left is the time left on the clock that has less.
func (d *deadline) left(start, now time.Time) time.Duration {
	mono := d.mono.Load() - int64(now.Sub(start))
	wall := d.wall.Load() - now.UnixNano()
	return time.Duration(min(mono, wall))
}
