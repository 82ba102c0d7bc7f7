package lockz

import "time"

// pageState is what the page shows, and what it answers as JSON. Durations are in seconds.
// Names and keys are cut and escaped as on the page. A list has the first entries only, of as
// many as its total says.
type pageState struct {
	Time    time.Time   `json:"time"`
	Since   time.Time   `json:"since"` // when the page was made: what it counts, it counts from there
	Service string      `json:"service"`
	Host    string      `json:"host"`
	PID     int         `json:"pid"`
	Clients []clientRow `json:"clients"`

	// Deadlocks are those that last, PastDeadlocks the last ones that are over.
	Deadlocks      []deadlockRow `json:"deadlocks"`
	PastDeadlocks  []deadlockRow `json:"past_deadlocks"`
	DeadlocksTotal int64         `json:"deadlocks_total"`

	// Holds are those of this process, the oldest first, a re-entry with the hold that it
	// enters.
	Holds      []holdRow `json:"holds"`
	HoldsTotal int       `json:"holds_total"`

	// Waiters are the callers of this process that found their lock taken, who waits longest
	// first.
	Waiters      []waiterRow `json:"waiters"`
	WaitersTotal int         `json:"waiters_total"`

	// Lost is how many locks have ended under their holders, LastLost when the last one did.
	Lost     int64     `json:"lost_total"`
	LastLost time.Time `json:"last_lost,omitzero"`

	// HotKeys are those acquired most since the page was made.
	HotKeys []hotRow `json:"hot_keys"`

	// Refusals are locks that were not acquired, Incidents what should not happen to locks; the last
	// ones first, of each outcome or kind as many as the limit says.
	Refusals       []eventRow `json:"refusals"`
	RefusalsTotal  int64      `json:"refusals_total"`
	Incidents      []eventRow `json:"incidents"`
	IncidentsTotal int64      `json:"incidents_total"`
}

// clientRow is a client of this process that is open.
type clientRow struct {
	ID         string  `json:"id"`              // holder fields begin with it
	Redis      string  `json:"redis"`           // [core.Client.Address]
	Error      string  `json:"error,omitempty"` // why Redis does not answer; snapshot does not ask it
	Holds      int     `json:"holds"`
	Waiters    int     `json:"waiters"` // callers that may wait, those included that get the lock at once
	OldestWait float64 `json:"oldest_wait_seconds"`
}

// lockRow is what names a lock.
type lockRow struct {
	Rule    string `json:"rule"`
	Kind    string `json:"kind"`
	Key     string `json:"key,omitempty"` // only with [WithRawKeys]
	KeyHash string `json:"key_hash"`      // [core.KeyHash]
	Keys    int    `json:"keys"`          // how many, 1 except for a lock of several names
}

// holdRow is a lock that is held.
type holdRow struct {
	lockRow

	Holder    string    `json:"holder"` // the field in Redis, which holds that pass the lock on have one after the other
	Since     time.Time `json:"since"`  // of this hold
	Held      float64   `json:"held_seconds"`
	LeaseLeft float64   `json:"lease_left_seconds"` // as known here; 0 for a lost one
	Watchdog  bool      `json:"watchdog"`           // the lease is renewed
	Reentries int       `json:"reentries"`
	Token     int64     `json:"token,omitempty"`
	Lost      bool      `json:"lost"`
	LostAt    time.Time `json:"lost_at,omitzero"`
	Waiters   int       `json:"waiters"` // callers of this process that wait for the key
	TraceID   string    `json:"trace_id,omitempty"`
}

// waiterRow is a caller that waits.
type waiterRow struct {
	lockRow

	Since     time.Time `json:"since"`
	Waited    float64   `json:"waited_seconds"`
	Position  int       `json:"position"` // among the callers of this process, 1 for the one who came first
	BlockedBy blocker   `json:"blocked_by"`
	Holds     []lockRow `json:"holds"`              // what it holds meanwhile
	Deadlock  int       `json:"deadlock,omitempty"` // number of the deadlock that it is in
	TraceID   string    `json:"trace_id,omitempty"`
}

// blocker is who is in the way of a waiter.
type blocker struct {
	Holder string  `json:"holder"`         // the field in Redis; empty: not known
	Here   bool    `json:"here"`           // it is a hold of this process
	Ours   bool    `json:"this_process"`   // its field is one of a client of this process
	Rule   string  `json:"rule,omitempty"` // of that hold
	Held   float64 `json:"held_seconds"`   // for how long; 0 if it is not here
}

// deadlockRow is a ring of callers of which each waits for a lock that the next one holds.
type deadlockRow struct {
	Number  int              `json:"number"`
	Found   time.Time        `json:"found"`
	Lasts   bool             `json:"lasts"`
	Callers []deadlockCaller `json:"callers"`
}

// deadlockCaller is one caller in a deadlock.
type deadlockCaller struct {
	WaitsFor lockRow   `json:"waits_for"`
	Holder   string    `json:"blocked_by"` // the field in Redis of the hold in its way, which the next caller has
	Holds    []lockRow `json:"holds"`
	Since    time.Time `json:"since"`
	TraceID  string    `json:"trace_id,omitempty"`
}

// hotRow is a key that is acquired often. Equal keys in several Redis servers are counted as one.
type hotRow struct {
	Key     string  `json:"key,omitempty"`
	KeyHash string  `json:"key_hash"`
	Count   int64   `json:"count"` // at least; at most Error more
	Error   int64   `json:"error"`
	Waits   int64   `json:"waits"` // how many of those found it taken
	Waited  float64 `json:"waited_seconds"`
}

// eventRow is a refusal or an incident. What a refusal is says its [core.Outcome]; an incident is
// "lost", "left" (to its lease, by a client that was closed under it), "leaked", "release failed",
// "renewal failed", "force released", or "ran unlocked: " and why, such as proceed or disabled.
type eventRow struct {
	Number  int64     `json:"number"` // counts the refusals, or the incidents
	Time    time.Time `json:"time"`
	What    string    `json:"what"`
	Rule    string    `json:"rule"`
	Kind    string    `json:"kind"`
	Key     string    `json:"key,omitempty"`
	KeyHash string    `json:"key_hash,omitempty"`
	Holder  string    `json:"holder,omitempty"` // whose hold it was, or who was in the way
	Lasted  float64   `json:"lasted_seconds"`   // of a refusal the wait, of a hold how long it was held
	Error   string    `json:"error,omitempty"`
	TraceID string    `json:"trace_id,omitempty"`
}
