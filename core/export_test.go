package core

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// EndLeaseOnWallClock moves the end of a hold's lease into the past on the wall clock
// only, like a suspension of the machine. It sends no notification.
func EndLeaseOnWallClock(h *Hold) {
	for _, o := range h.handle.Hold.Holders() {
		o.Lease().AdvanceClocks(0, o.Lease().Left(time.Now()))
	}
}

// EndLeaseOnMonotonicClock moves the end of a hold's lease into the past on the monotonic clock only, as in a stopped
// process whose wall clock was set back.
func EndLeaseOnMonotonicClock(h *Hold) {
	for _, o := range h.handle.Hold.Holders() {
		o.Lease().AdvanceClocks(o.Lease().Left(time.Now()), 0)
	}
}

// NeedsOnly makes a hold need only n of its leases.
func NeedsOnly(h *Hold, n int) { h.handle.Hold.NeedOnly(n) }

// EndLeaseEarlier makes a lease of a hold expire earlier by d and notifies the watchdog.
func EndLeaseEarlier(h *Hold, index int, d time.Duration) {
	l := h.handle.Hold.Holders()[index].Lease()
	l.AdvanceClocks(d, d)
	l.Watch(time.Now())
}

// JumpWallClock sets the wall clock of all watched leases forward by d, as after a suspension of that length. It sends
// no notification.
func JumpWallClock(c *Client, d time.Duration) {
	c.watchdog.AdvanceWallClock(d)
}

// LetRunsLast removes the time limit of runs, for tests that need a run on a busy machine. Call it before the client is
// used.
func LetRunsLast(c *Client) {
	c.queues = queue.New(queue.Config{PerKey: c.cfg.maxWaitersPerKey, InAll: c.cfg.maxWaiters, Run: queue.RunLimits{Alone: time.Hour, Shared: time.Hour}})
	c.connect()
}

// PutKeysApart puts every key of a MultiLock into a separate slot. Call it before the
// client is used.
func PutKeysApart(c *Client) { c.oneScript = func([]string) bool { return false } }

// Abandon leaves a new field to the reaper, as if an acquire had got no answer.
func Abandon(c *Client, key string) (field string) {
	field = c.id.NextField(c.kinds.Reentrant)
	c.reaper.Abandon(c.kinds.Reentrant, []string{key}, field, nil, time.Minute)
	return field
}
