package core

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// EndLeaseOnWallClock moves the end of a hold's lease into the past on the wall clock
// only, as a suspended machine finds it, and notifies nobody.
func EndLeaseOnWallClock(h *Hold) {
	for _, o := range h.handle.Hold.Holders() {
		o.Lease().AdvanceClocks(0, o.Lease().Left(time.Now()))
	}
}

// EndLeaseOnMonotonicClock does so on the monotonic clock only, as a stopped process
// finds it whose wall clock was set back.
func EndLeaseOnMonotonicClock(h *Hold) {
	for _, o := range h.handle.Hold.Holders() {
		o.Lease().AdvanceClocks(o.Lease().Left(time.Now()), 0)
	}
}

// NeedsOnly makes a hold need so many of its leases only.
func NeedsOnly(h *Hold, n int) { h.handle.Hold.NeedOnly(n) }

// EndLeaseEarlier has one lease of a hold end earlier by d, as the watchdog knows.
func EndLeaseEarlier(h *Hold, index int, d time.Duration) {
	l := h.handle.Hold.Holders()[index].Lease()
	l.AdvanceClocks(d, d)
	l.Watch(time.Now())
}

// JumpWallClock makes the wall clock of everything under watch be d ahead of what it
// was, as after a suspension of that length. Nobody is notified.
func JumpWallClock(c *Client, d time.Duration) {
	c.watchdog.AdvanceWallClock(d)
}

// LetRunsLast takes the time limit off the runs of hand-offs, for tests that need one
// on a busy machine. It is called before the client is used.
func LetRunsLast(c *Client) {
	c.queues = queue.New(queue.Config{PerKey: c.cfg.maxWaitersPerKey, InAll: c.cfg.maxWaiters, Run: queue.RunLimits{Alone: time.Hour, Shared: time.Hour}})
	c.connect()
}

// PutKeysApart makes every key of a MultiLock have a slot of its own. It is called
// before the client is used.
func PutKeysApart(c *Client) { c.oneScript = func([]string) bool { return false } }

// Abandon leaves a new field to the reaper, as if an acquire had got no answer.
func Abandon(c *Client, key string) (field string) {
	field = c.id.NextField(c.kinds.Reentrant)
	c.reaper.Abandon(c.kinds.Reentrant, []string{key}, field, nil, time.Minute)
	return field
}
