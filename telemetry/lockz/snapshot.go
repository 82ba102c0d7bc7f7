package lockz

import (
	"time"

	"github.com/interlock-go/interlock/core"
)

// snapshot is all the data that the page shows and that JSON contains. Durations are in seconds. Names and
// keys are cut and escaped as on the page. A list contains only the first entries; its total counts all of
// them.
type snapshot struct {
	Time    time.Time   `json:"time"`
	Since   time.Time   `json:"since"` // creation time of the page; totals count from then
	Service string      `json:"service"`
	Host    string      `json:"host"`
	PID     int         `json:"pid"`
	Clients []clientRow `json:"clients"`

	// Deadlocks have not ended. PastDeadlocks are the last deadlocks that ended.
	Deadlocks      []deadlockRow `json:"deadlocks"`
	PastDeadlocks  []deadlockRow `json:"past_deadlocks"`
	DeadlocksTotal int64         `json:"deadlocks_total"`

	// Holds are the holds of this process, the oldest first. A hold and its re-entries are one entry.
	Holds      []holdRow `json:"holds"`
	HoldsTotal int       `json:"holds_total"`

	// Waiters are the callers of this process that found their lock taken. The caller that has waited
	// longest is first.
	Waiters      []waiterRow `json:"waiters"`
	WaitersTotal int         `json:"waiters_total"`
	waitersByKey []*waitRow  // the rows that the page lists instead of Waiters

	// Lost counts the holds that lost their lock. LastLost is the time of the last loss.
	Lost     int64     `json:"lost_total"`
	LastLost time.Time `json:"last_lost,omitzero"`

	// HotKeys are the keys that were acquired most since the page was created.
	HotKeys []hotRow `json:"hot_keys"`

	// Refusals are acquisitions that got no lock. Incidents are failures of holds, and handlers that ran
	// unlocked. The last ones are first; at most 200 of each outcome or incident are kept.
	Refusals       []eventRow `json:"refusals"`
	RefusalsTotal  int64      `json:"refusals_total"`
	Incidents      []eventRow `json:"incidents"`
	IncidentsTotal int64      `json:"incidents_total"`
}

// clientRow is an open client of this process.
type clientRow struct {
	ID         string  `json:"id"`              // prefix of the holder fields of the client
	Redis      string  `json:"redis"`           // [core.Client.Address]
	Error      string  `json:"error,omitempty"` // reason that Redis does not answer; filled by askRedis
	Holds      int     `json:"holds"`
	Waiters    int     `json:"waiters"` // callers in an acquisition that may wait, including those that do not have to
	OldestWait float64 `json:"oldest_wait_seconds"`

	client *core.Client
}

// lockRow identifies a lock.
type lockRow struct {
	Rule    string `json:"rule"`
	Kind    string `json:"kind"`
	Key     string `json:"key,omitempty"` // only with [WithRawKeys]
	KeyHash string `json:"key_hash"`      // [core.KeyHash]
	Keys    int    `json:"keys"`          // number of keys of the lock; Key is the first
}

// holdRow is a hold.
type holdRow struct {
	lockRow

	Holder    string    `json:"holder"` // the field in Redis; holds that pass the lock on have the same field
	Since     time.Time `json:"since"`  // time at which this hold got the lock
	Held      float64   `json:"held_seconds"`
	LeaseLeft float64   `json:"lease_left_seconds"` // counted from the last renewal observed; 0 if the lock is lost
	Watchdog  bool      `json:"watchdog"`           // the lease is renewed
	Reentries int       `json:"reentries"`
	Token     int64     `json:"token,omitempty"`
	Lost      bool      `json:"lost"`
	LostAt    time.Time `json:"lost_at,omitzero"`
	Waiters   int       `json:"waiters"` // callers of this process that wait for the key
	TraceID   string    `json:"trace_id,omitempty"`

	key, field string // as in Redis
}

// waiterRow is a waiter.
type waiterRow struct {
	lockRow

	Since     time.Time `json:"since"`
	Waited    float64   `json:"waited_seconds"`
	Position  int       `json:"position"` // position among the waiters of this process, from 1
	BlockedBy blocker   `json:"blocked_by"`
	Holds     []lockRow `json:"holds"`              // the locks that the waiter holds
	Deadlock  int       `json:"deadlock,omitempty"` // number of the deadlock that the waiter is in
	TraceID   string    `json:"trace_id,omitempty"`
}

// waitRow is a row of the page: all waiters of one key, or one waiter in a deadlock.
type waitRow struct {
	waiterRow // the waiter that has waited longest

	ID      string // HTML id of the row
	Callers int
	Rules   map[rule]bool // rules of the callers
	Holding int           // number of the callers that hold a lock
}

// blocker is the holder that blocks a waiter.
type blocker struct {
	Holder string  `json:"holder"`         // the field in Redis; empty: not known
	Here   bool    `json:"here"`           // the blocker is a hold of this process
	Ours   bool    `json:"this_process"`   // the field belongs to a client of this process
	Rule   string  `json:"rule,omitempty"` // rule of the hold, if it is here
	Held   float64 `json:"held_seconds"`   // age of the hold; 0 if it is not here
}

// deadlockRow is a ring of callers. Each waits for a lock that the next one holds.
type deadlockRow struct {
	Number  int              `json:"number"`
	Found   time.Time        `json:"found"`
	Lasts   bool             `json:"lasts"`
	Callers []deadlockCaller `json:"callers"`
}

// deadlockCaller is one caller in a deadlock.
type deadlockCaller struct {
	WaitsFor lockRow   `json:"waits_for"`
	Holder   string    `json:"blocked_by"` // field of the blocking hold, which belongs to the next caller
	Holds    []lockRow `json:"holds"`
	Since    time.Time `json:"since"`
	TraceID  string    `json:"trace_id,omitempty"`
}

// hotRow is a key that is acquired often. Equal keys in several Redis servers are counted as one key.
type hotRow struct {
	Key     string  `json:"key,omitempty"`
	KeyHash string  `json:"key_hash"`
	Count   int64   `json:"count"` // at least; at most Error more
	Error   int64   `json:"error"`
	Waits   int64   `json:"waits"` // number of these acquisitions that found the key taken
	Waited  float64 `json:"waited_seconds"`
}

// eventRow is a refusal or an incident.
type eventRow struct {
	Number int64     `json:"number"` // number among all refusals, or among all incidents
	Time   time.Time `json:"time"`

	// What names the event. A refusal has its [core.Outcome]. An incident has "lost", "held too long" (longer
	// than its limit), "left" (to its lease, because its client was closed), "leaked", "release failed",
	// "renewal failed", "force released", or "ran unlocked: " and the reason, such as proceed or disabled.
	What    string  `json:"what"`
	Rule    string  `json:"rule"`
	Kind    string  `json:"kind"`
	Key     string  `json:"key,omitempty"`
	KeyHash string  `json:"key_hash,omitempty"`
	Holder  string  `json:"holder,omitempty"` // field of the hold, or of the holder that refused the lock
	Lasted  float64 `json:"lasted_seconds"`   // time for which the caller waited or the hold was held
	Error   string  `json:"error,omitempty"`
	TraceID string  `json:"trace_id,omitempty"`
}

// message is the response to a request that gets neither the page nor its data: a page with one sentence,
// or a problem document (RFC 9457).
type message struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Text   string `json:"detail"`
}
