package history

import "time"

// Kind is the kind of an [Event].
type Kind string

// The kinds of events.
const (
	Acquire Kind = "acquire" // an acquisition and, if it succeeded, the whole hold
	Force   Kind = "force"   // a ForceRelease
	Look    Kind = "look"    // a holder asked Redis who holds its lock
	Sample  Kind = "sample"  // the sampler read a key, or a key beside it, which Note names; End is when it asked
	Fault   Kind = "fault"   // something was broken
	Stall   Kind = "stall"   // a process stood still
	Finish  Kind = "finish"  // a process ended; Note says what went wrong
)

// Outcome is how an operation ended.
type Outcome string

// The outcomes.
const (
	Acquired    Outcome = "acquired"
	Busy        Outcome = "busy"        // the wait time had passed
	Canceled    Outcome = "canceled"    // the caller's context ended
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
	Kind      Kind          `json:"kind"`
	Process   int           `json:"p"` // 0 is the parent of the others
	Goroutine int           `json:"g,omitempty"`
	Begin     time.Duration `json:"begin"`
	End       time.Duration `json:"end"`
	Keys      []string      `json:"keys,omitempty"`
	Lock      Lock          `json:"lock,omitempty"`  // the kind that the keys are locked as
	Owner     string        `json:"owner,omitempty"` // the same for an acquisition and its re-entries
	Outcome   Outcome       `json:"outcome,omitempty"`
	Field     string        `json:"field,omitempty"` // of a Look: the field of the hold that asked
	Note      string        `json:"note,omitempty"`
	Slow      bool          `json:"slow,omitempty"` // of a Fault: answers to Process were late, each by less than a backend timeout

	Ask    *Ask           `json:"ask,omitempty"`    // of an Acquire
	Hold   *Hold          `json:"hold,omitempty"`   // of an Acquire that succeeded
	Fields map[string]int `json:"fields,omitempty"` // of a Look or Sample: the holders and waiters that Redis names
	TTL    time.Duration  `json:"ttl,omitempty"`    // of a Sample; negative: the key has none
	Stays  bool           `json:"stays,omitempty"`  // of a Sample: the key has no end by its nature
	Count  int            `json:"count,omitempty"`  // of a Look: the hold count that the holder knows, 0 unknown; of a Sample: the available permits
}

// Ask is what an acquisition asked for.
type Ask struct {
	Wait    time.Duration `json:"wait"` // NoWaitTime: none given
	Lease   time.Duration `json:"lease"`
	Renewed bool          `json:"renewed,omitempty"` // no lease given: the watchdog's
	Reentry bool          `json:"reentry,omitempty"` // made with the context of a hold on the same keys
	Cut     time.Duration `json:"cut,omitempty"`     // when the caller's context ended or would have ended; 0: never
	Queued  time.Duration `json:"queued,omitempty"`  // when Redis had answered that the lock is taken; 0: it did not
}

// NoWaitTime stands for an acquisition that waits until its context ends.
const NoWaitTime = time.Duration(-1)

// Hold is a hold as its holder saw it.
type Hold struct {
	Field     string        `json:"field"`
	Alive     time.Duration `json:"alive"`               // the last time at which its context was found alive
	Safe      time.Duration `json:"safe"`                // until when it could then rely on the lock
	Ended     time.Duration `json:"ended,omitempty"`     // when its context was found ended before the release; 0: it was alive
	Cause     Outcome       `json:"cause,omitempty"`     // why it ended: Lost, Closed or Canceled
	Refreshed bool          `json:"refreshed,omitempty"` // the lease is not the one asked for
	Left      time.Duration `json:"left,omitempty"`      // ended by Leave with this duration; 0: by Release
	Release   Release       `json:"release"`
	Updates   []Update      `json:"updates,omitempty"`
	Token     int64         `json:"token,omitempty"`
	Reads     []Reading     `json:"reads,omitempty"`
}

// Release is the end of a hold.
type Release struct {
	Begin   time.Duration `json:"begin"`
	End     time.Duration `json:"end"`
	Outcome Outcome       `json:"outcome"`
	Twice   Outcome       `json:"twice,omitempty"` // of a second Release
	Note    string        `json:"note,omitempty"`
}

// Update is a change of the value that a lock guards: read, then written, in two steps. Every value
// is written once in a run.
type Update struct {
	Key     string        `json:"key"`
	At      time.Duration `json:"at"` // before the last look at the context
	Read    uint64        `json:"read"`
	Wrote   uint64        `json:"wrote"`
	Certain bool          `json:"certain"` // the context was alive after the write, too
}

// Reading is what a reader found at its first and at its last look.
type Reading struct {
	Key     string        `json:"key"`
	At      time.Duration `json:"at"` // before the last look at the context
	First   uint64        `json:"first"`
	Last    uint64        `json:"last"`
	Certain bool          `json:"certain"` // the context was alive after the last look, too
}

// end returns when the hold had ended for the holder.
func (h *Hold) end() time.Duration { return max(h.Release.End, h.Ended, h.Alive) }

// Lock is the kind of the lock of an [Acquire] or a [Force].
type Lock string

// The kinds of locks. All are exclusive, except readers and permits.
const (
	Reentrant Lock = ""
	Fair      Lock = "fair"
	Fenced    Lock = "fenced"
	Spin      Lock = "spin"
	ReadLock  Lock = "read" // and WriteLock have one key
	WriteLock Lock = "write"
	Permit    Lock = "permit" // of a semaphore; Limits.Permits has how many there are
)

// mostReserve is by how much a handed-over fixed lease lasts longer in Redis, at most.
const mostReserve = 100 * time.Millisecond

// longest returns how long the lease that an acquisition asked for can last in Redis. A process that
// hands over a fixed lease may add a reserve of the same length, so that the lock can pass on from
// there.
func (e *Event) longest() time.Duration {
	if e.Lock != Reentrant && e.Lock != Spin {
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
