package lease

import (
	"sync/atomic"
	"time"
)

// deadline is the time at which a holder stops relying on its lease. It is measured on two clocks, and the
// earlier one counts. The monotonic clock does not step, but it stands still while a virtual machine is suspended. The
// wall clock continues.
type deadline struct {
	mono atomic.Int64 // nanoseconds since the client's start
	wall atomic.Int64 // Unix nanoseconds
}

// margin returns the time between the deadline of the holder and the end of the lease in Redis. It covers the
// drift between the clock of the client and the clock of Redis during the lease, and the granularity of both. It is never
// more than half the lease, so that leases of a few milliseconds are usable.
func margin(ttl time.Duration) time.Duration {
	return min(ttl/100+granularity, ttl/2)
}

// granularity is the most by which two clocks that agree may differ when both are read at the same instant.
const granularity = 2 * time.Millisecond

// DeadlineAfter returns the deadline of a lease of length ttl whose command was sent at sent.
func DeadlineAfter(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - margin(ttl))
}

// Expired reports whether, by either clock, a lease of length ttl whose command was sent at sent has passed its
// deadline.
func Expired(sent time.Time, ttl time.Duration, now time.Time) bool {
	end := DeadlineAfter(sent, ttl)
	return !now.Before(end) || now.UnixNano() >= end.UnixNano()
}

// set moves the deadline to t, up or down.
func (d *deadline) set(start, t time.Time) {
	d.mono.Store(int64(t.Sub(start)))
	d.wall.Store(t.UnixNano())
}

// raise moves the deadline to t if that is later and returns by how much.
func (d *deadline) raise(start, t time.Time) time.Duration {
	by := t.Sub(start) - time.Duration(d.mono.Load())
	if by > 0 {
		d.set(start, t)
	}
	return max(by, 0)
}

// left returns the time that is left, on the clock that shows less.
func (d *deadline) left(start, now time.Time) time.Duration {
	mono := d.mono.Load() - int64(now.Sub(start))
	wall := d.wall.Load() - now.UnixNano()
	return time.Duration(min(mono, wall))
}
