package history

import "time"

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of events.
const (
	Acquire EventKind = "acquire" // an acquisition and, if it succeeded, the whole hold
	Force   EventKind = "force"   // a ForceRelease
	Look    EventKind = "look"    // a holder asked Redis who holds its lock
	Sample  EventKind = "sample"  // the sampler read a key or, if Note names one, a key beside it; End is the time of the answer
	Fault   EventKind = "fault"   // a fault was injected
	Stall   EventKind = "stall"   // a process stalled
	Finish  EventKind = "finish"  // a process finished; Note contains its errors
)

// Outcome is the result of an operation.
type Outcome string

// The values of Outcome.
const (
	Acquired    Outcome = "acquired"
	Busy        Outcome = "busy"        // the wait time passed
	Canceled    Outcome = "canceled"    // the caller's context was canceled
	Unavailable Outcome = "unavailable" // Redis did not answer
	Lost        Outcome = "lost"
	NotHeld     Outcome = "not held"
	Closed      Outcome = "closed"
	Overload    Outcome = "overload"
	OK          Outcome = "ok"
	Free        Outcome = "free"  // there was nothing to force
	Other       Outcome = "other" // an undocumented error, in Note
)

// Event is one event. Times are since the beginning of the run.
type Event struct {
	Kind      EventKind     `json:"kind"`
	Process   int           `json:"p"` // 0 is the parent of the others
	Goroutine int           `json:"g,omitempty"`
	Begin     time.Duration `json:"begin"`
	End       time.Duration `json:"end"`
	Keys      []string      `json:"keys,omitempty"`
	Lock      Lock          `json:"lock,omitempty"`  // the kind that the keys are locked as
	Owner     string        `json:"owner,omitempty"` // the same for an acquisition and its re-entries
	Outcome   Outcome       `json:"outcome,omitempty"`
	Field     string        `json:"field,omitempty"` // for a Look: the field of the hold whose holder asked
	Note      string        `json:"note,omitempty"`
	Slow      bool          `json:"slow,omitempty"` // for a Fault: answers to Process were late, each by less than a backend timeout

	Ask    *Ask           `json:"ask,omitempty"`    // for an Acquire
	Hold   *Hold          `json:"hold,omitempty"`   // for an Acquire that succeeded
	Fields map[string]int `json:"fields,omitempty"` // for a Look or Sample: the holders and waiters in Redis
	TTL    time.Duration  `json:"ttl,omitempty"`    // for a Sample; negative: the key has no TTL
	Stays  bool           `json:"stays,omitempty"`  // for a Sample: a key of this type never expires
	Count  int            `json:"count,omitempty"`  // for a Look: the hold count according to the holder, 0 if unknown; for a Sample: the available permits
}

// Ask contains the parameters of an acquisition.
type Ask struct {
	Wait    time.Duration `json:"wait"` // NoWaitTime: the caller gave no wait time
	Lease   time.Duration `json:"lease"`
	Renewed bool          `json:"renewed,omitempty"`  // the caller gave no lease, so the watchdog renews it
	MaxHold time.Duration `json:"max_hold,omitempty"` // the longest hold of a renewed lease; 0: unlimited
	Reentry bool          `json:"reentry,omitempty"`  // called with the context of a hold on the same keys
	Cut     time.Duration `json:"cut,omitempty"`      // when the caller's context was or would have been canceled; 0: never
	Queued  time.Duration `json:"queued,omitempty"`   // when Redis answered that the lock is taken; 0: no such answer came
}

// NoWaitTime is the Wait of an acquisition that waits until its context is canceled.
const NoWaitTime = time.Duration(-1)

// Hold is a hold as its holder saw it.
type Hold struct {
	Field     string        `json:"field"`
	Alive     time.Duration `json:"alive"`               // the last time at which the holder found its context alive
	Safe      time.Duration `json:"safe"`                // the time until which the holder, at Alive, could rely on the lock
	Ended     time.Duration `json:"ended,omitempty"`     // when the holder found its context canceled before the release; 0: it was alive
	Cause     Outcome       `json:"cause,omitempty"`     // the cause of the cancellation: Lost, Closed or Canceled
	Refreshed bool          `json:"refreshed,omitempty"` // the lease was changed after the grant
	Left      time.Duration `json:"left,omitempty"`      // the duration of its Leave; 0: the holder released it
	Release   Release       `json:"release"`
	Updates   []Update      `json:"updates,omitempty"`
	Token     int64         `json:"token,omitempty"`
	Reads     []Reading     `json:"reads,omitempty"`
}

// Release is the release of a hold.
type Release struct {
	Begin   time.Duration `json:"begin"`
	End     time.Duration `json:"end"`
	Outcome Outcome       `json:"outcome"`
	Twice   Outcome       `json:"twice,omitempty"` // outcome of a second Release
	Note    string        `json:"note,omitempty"`
}

// Update is a change of the value that a lock guards. The holder reads the value and then writes
// another, in two steps. No value is written twice in a test run.
type Update struct {
	Key     string        `json:"key"`
	At      time.Duration `json:"at"` // before the last look at the context
	Read    uint64        `json:"read"`
	Wrote   uint64        `json:"wrote"`
	Certain bool          `json:"certain"` // the context was still alive after the write
}

// Reading holds the values that a reader found at its first and at its last look.
type Reading struct {
	Key     string        `json:"key"`
	At      time.Duration `json:"at"` // before the last look at the context
	First   uint64        `json:"first"`
	Last    uint64        `json:"last"`
	Certain bool          `json:"certain"` // the context was still alive after the last look
}

// end returns the time at which the hold had ended for the holder.
func (h *Hold) end() time.Duration { return max(h.Release.End, h.Ended, h.Alive) }

// Lock is the kind of the lock of an [Acquire] or a [Force].
type Lock string

// The kinds of locks. All are exclusive, except readers and permits.
const (
	Reentrant Lock = ""
	Fair      Lock = "fair"
	Fenced    Lock = "fenced"
	Spin      Lock = "spin"
	ReadLock  Lock = "read" // has the same key as WriteLock
	WriteLock Lock = "write"
	Permit    Lock = "permit" // a permit of a semaphore; Limits.Permits contains their number
	Group     Lock = "group"  // values of one group; each value is a key

	NonReentrant Lock = "non-reentrant"
)

// Passes reports whether a process may pass a lock of this kind from caller to caller in memory.
func (l Lock) Passes() bool { return l == Reentrant || l == NonReentrant || l == Spin }

// mostReserve is the most by which a handed-over fixed lease is extended in Redis.
const mostReserve = 100 * time.Millisecond

// longest returns how long the lease of an acquisition can last in Redis. A process that hands over a
// fixed lease may add a reserve of the same length, so that the lock can be passed on again.
func (e *Event) longest() time.Duration {
	if !e.Lock.Passes() {
		return e.Ask.Lease
	}
	return e.Ask.Lease + min(e.Ask.Lease, mostReserve)
}

// until returns the end of the whole event.
func (e *Event) until() time.Duration {
	if e.Hold != nil {
		return max(e.End, e.Hold.end())
	}
	return e.End
}
