package history

import "time"

// Kind says what an [Event] is.
type Kind string

// The kinds of events.
const (
	Acquire Kind = "acquire" // an acquisition and, if it succeeded, the whole hold
	Force   Kind = "force"   // a ForceRelease
	Look    Kind = "look"    // a holder asked Redis who holds its lock
	Sample  Kind = "sample"  // somebody beside the clients read a key, or one beside it, which Note has then; End is when it was asked for
	Fault   Kind = "fault"   // something was broken
	Stall   Kind = "stall"   // a process stood still
	Finish  Kind = "finish"  // a process ended; Note says what was wrong with that
)

// Outcome is how an operation ended.
type Outcome string

// The outcomes.
const (
	Acquired    Outcome = "acquired"
	Busy        Outcome = "busy"        // the wait time was over
	Canceled    Outcome = "canceled"    // the caller's context ended
	Unavailable Outcome = "unavailable" // Redis did not answer
	Lost        Outcome = "lost"
	NotHeld     Outcome = "not held"
	Closed      Outcome = "closed"
	Overload    Outcome = "overload"
	OK          Outcome = "ok"
	Free        Outcome = "free"  // there was nothing to force
	Other       Outcome = "other" // an error that is not documented; Note has it
)

// Event is one thing that happened. Times are since the beginning of the run.
type Event struct {
	Kind      Kind          `json:"kind"`
	Process   int           `json:"p"` // 0 is who started the others
	Goroutine int           `json:"g,omitempty"`
	Begin     time.Duration `json:"begin"`
	End       time.Duration `json:"end"`
	Keys      []string      `json:"keys,omitempty"`
	Lock      Lock          `json:"lock,omitempty"`  // the kind that the keys are locked as
	Owner     string        `json:"owner,omitempty"` // the same for an acquisition and its re-entries
	Outcome   Outcome       `json:"outcome,omitempty"`
	Field     string        `json:"field,omitempty"` // of a Look: that of the hold that asked
	Note      string        `json:"note,omitempty"`
	Slow      bool          `json:"slow,omitempty"` // of a Fault: answers to Process came late, each by less than a backend timeout

	Ask    *Ask           `json:"ask,omitempty"`    // of an Acquire
	Hold   *Hold          `json:"hold,omitempty"`   // of an Acquire that succeeded
	Fields map[string]int `json:"fields,omitempty"` // of a Look or Sample: who Redis says holds the lock, or waits for it
	TTL    time.Duration  `json:"ttl,omitempty"`    // of a Sample; negative: the key has none
	Stays  bool           `json:"stays,omitempty"`  // of a Sample: the key has no end by its nature
	Count  int            `json:"count,omitempty"`  // of a Look: the hold count that the holder knows, 0 unknown; of a Sample: the permits that are free
}

// Ask is what an acquisition asked for.
type Ask struct {
	Wait    time.Duration `json:"wait"` // NoWaitTime: none given
	Lease   time.Duration `json:"lease"`
	Renewed bool          `json:"renewed,omitempty"` // no lease given: the watchdog's
	Reentry bool          `json:"reentry,omitempty"` // made with the context of a hold on the same keys
	Cut     time.Duration `json:"cut,omitempty"`     // when the caller's context ended or would have; 0: not
	Queued  time.Duration `json:"queued,omitempty"`  // when Redis had answered that the lock is taken; 0: it did not
}

// NoWaitTime stands for an acquisition that waits until its context ends.
const NoWaitTime = time.Duration(-1)

// Hold is how a holder saw its hold.
type Hold struct {
	Field     string        `json:"field"`
	Alive     time.Duration `json:"alive"`               // the last time at which its context was found alive
	Safe      time.Duration `json:"safe"`                // until when it could then rely on the lock
	Ended     time.Duration `json:"ended,omitempty"`     // when its context was found ended before the release; 0: it was not
	Cause     Outcome       `json:"cause,omitempty"`     // of that: Lost, Closed or Canceled
	Refreshed bool          `json:"refreshed,omitempty"` // the lease is not what was asked for
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

// Update is a change of what a lock guards: read, then written, in two steps. Every
// value is written once in a run.
type Update struct {
	Key     string        `json:"key"`
	At      time.Duration `json:"at"` // before the last look at the context
	Read    uint64        `json:"read"`
	Wrote   uint64        `json:"wrote"`
	Certain bool          `json:"certain"` // the context was alive after the write, too
}

// Reading is what a reader found, when it looked for the first and for the last time.
type Reading struct {
	Key     string        `json:"key"`
	At      time.Duration `json:"at"` // before the last look at the context
	First   uint64        `json:"first"`
	Last    uint64        `json:"last"`
	Certain bool          `json:"certain"` // the context was alive after the last look, too
}

// end is when the hold was over for the holder.
func (h *Hold) end() time.Duration { return max(h.Release.End, h.Ended, h.Alive) }
