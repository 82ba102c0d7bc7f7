package ruleset

import (
	"math"
	"time"

	"github.com/interlock-go/interlock/failpolicy"
)

// Values for the durations of a [Rule] that zero, which is "not set", cannot say.
// In a [Resolved] rule they appear as they are.
const (
	// NoWait as WaitTime: one attempt in one round trip.
	NoWait time.Duration = math.MinInt64 + 1 + iota
	// WaitForever as WaitTime: until the caller's context ends.
	WaitForever
	// Watchdog as LeaseTime: the lease is renewed for as long as the handler runs.
	Watchdog
)

// The built-in defaults of a rule.
const (
	// DefaultWaitTime is the wait of a rule that sets none.
	DefaultWaitTime = 10 * time.Second
	// DefaultLeaseTime is the lease of a rule that sets none.
	DefaultLeaseTime = Watchdog
)

// MaxDuration is the longest wait, lease and window accepted. It equals
// core.MaxDuration.
const MaxDuration = 10 * 365 * 24 * time.Hour

// Kind is a kind of lock.
type Kind string

// The kinds of lock. All rules about one key need the same kind: a lock of one does not
// wake the waiters of another, and its holders have other tokens or none. Where two keys are
// the same to the letter, another kind is an error: see [MixedKinds].
const (
	// Reentrant is Redisson's RLock. The default.
	Reentrant Kind = "reentrant"
	// Fenced is RFencedLock: every holder has a larger fencing token than the one
	// before, by which a store refuses the late write of a holder that was paused. Of
	// one key only.
	Fenced Kind = "fenced"
	// Spin is RedissonSpinLock: without messages, for very many keys that are seldom
	// taken. Who waits in another process attempts again and again. Of one key only.
	Spin Kind = "spin"
)

// Kinds lists the kinds that exist.
func Kinds() []Kind { return []Kind{Reentrant, Fenced, Spin} }

// TakesSeveral reports whether several keys can be taken together.
func (k Kind) TakesSeveral() bool { return k == Reentrant }

// KeyFormat says how values enter a key.
type KeyFormat string

// The key formats.
const (
	// Encode percent-encodes what would make two keys ambiguous. The default.
	Encode KeyFormat = "encode"
	// Strict refuses such values with cause [failpolicy.Key]. For keys that are
	// shared with programs which do not encode.
	Strict KeyFormat = "strict"
)

// KeyFormats lists the key formats.
func KeyFormats() []KeyFormat { return []KeyFormat{Encode, Strict} }

// Rule says which lock to take around an endpoint and what to do without it. A
// zero field is not set; see the package comment. Only Key or Keys is required.
//
// The tag is the field's name outside Go.
type Rule struct {
	// Endpoint is where the rule applies, such as HTTP("POST /orders/:id/pay").
	// Leave it empty for a rule that is handed to an adapter with its route.
	Endpoint Endpoint `rule:"endpoint"`

	// Name is the static label of the rule in metrics, spans and logs, and tells
	// the rules of one endpoint apart. Never put request data into it. Default: the
	// endpoint.
	Name string `rule:"name"`

	// Key is the template of the key, such as "order:pay:#{path.id}".
	Key string `rule:"key"`

	// Keys is several templates whose keys are taken together, all or none. Exactly
	// one of Key and Keys must be set.
	Keys []string `rule:"keys"`

	// Kind is the kind of lock: [Reentrant], [Fenced] or [Spin]. Only the first can be of
	// several keys. Default: [Reentrant].
	Kind Kind `rule:"kind"`

	// WaitTime is how long to wait for the lock: 1 ms to [MaxDuration], [NoWait] or
	// [WaitForever]. It ends a little before the caller's deadline in any case.
	// Default: [DefaultWaitTime].
	WaitTime time.Duration `rule:"wait_time"`

	// LeaseTime is how long the lock is held at most: 1 ms to [MaxDuration], or
	// [Watchdog] for "as long as the handler runs". Default: [Watchdog].
	LeaseTime time.Duration `rule:"lease_time"`

	// OnBusy answers a lock that stays taken, and a call inside a debounce window.
	// This and the next three: default [failpolicy.Error].
	OnBusy failpolicy.Strategy `rule:"on_busy"`
	// OnBackend answers a Redis that cannot tell.
	OnBackend failpolicy.Strategy `rule:"on_backend"`
	// OnKey answers a request that yields no key.
	OnKey failpolicy.Strategy `rule:"on_key"`
	// OnOverload answers too many waiters.
	OnOverload failpolicy.Strategy `rule:"on_overload"`

	// OnLost says what a loss does to the running handler. Default:
	// [failpolicy.Cancel].
	OnLost failpolicy.OnLost `rule:"on_lost"`

	// Fallback is the name of the handler to run where a strategy is
	// [failpolicy.Fallback].
	Fallback string `rule:"fallback"`

	// When is a bare boolean expression; the lock is taken only when it is true.
	// Missing values are empty in it. Default: always.
	When string `rule:"when"`

	// Debounce refuses further calls for this long after one succeeded. The lock is
	// held with the watchdog while the handler runs, and nobody waits for it.
	Debounce time.Duration `rule:"debounce"`

	// MaxWaiters refuses a caller when so many of this process already wait for the
	// key. Default: the client's limit.
	MaxWaiters int `rule:"max_waiters"`

	// Permits is the size of a semaphore. No kind has permits yet.
	Permits int `rule:"permits"`

	// Status changes what a refused client sees, per cause.
	Status failpolicy.Statuses `rule:"status"`

	// Response is the JSON document that [failpolicy.NullResponse] answers with.
	// Default: null, or an empty message.
	Response string `rule:"response"`

	// Message replaces the text that a refused client sees, whatever the cause: do
	// not say in it that somebody else holds the lock. Default: the cause's title.
	Message string `rule:"message"`

	// Prefix is put before every key of the rule, after the client's own prefix.
	Prefix string `rule:"prefix"`

	// KeyFormat says how values enter the key. Default: [Encode].
	KeyFormat KeyFormat `rule:"key_format"`

	// Profile names a set of values for what the rule does not set: see [Profiles].
	Profile string `rule:"profile"`

	// Disabled lets the handler run without the lock, counted.
	Disabled bool `rule:"disabled"`

	// DryRun lets the handler run without the lock and counts what would have
	// happened.
	DryRun bool `rule:"dry_run"`

	// None says that the endpoint needs no lock, on purpose: it takes the endpoint
	// out of a wildcard's reach and answers [Settings.Uncovered]. Nothing is counted.
	// The rule has no other field but its endpoint.
	None bool `rule:"none"`
}

// Policy is what the rule says about failures.
func (r *Rule) Policy() failpolicy.Policy {
	return failpolicy.Policy{
		OnBusy: r.OnBusy, OnBackend: r.OnBackend, OnKey: r.OnKey, OnOverload: r.OnOverload,
		OnLost: r.OnLost, Statuses: r.Status,
	}
}

// Templates are the key templates: Keys, or the one Key.
func (r *Rule) Templates() []string {
	if r.Key != "" {
		return []string{r.Key}
	}
	return r.Keys
}
