package ruleset

import (
	"math"
	"time"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
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

// maxDuration is the longest wait, lease and window accepted: core.MaxDuration.
const maxDuration = 10 * 365 * 24 * time.Hour

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

// Rule says which lock to take around an endpoint and what to do without it. A
// zero field is not set; see the package comment. Only Key or Keys is required.
type Rule struct {
	// Endpoint is where the rule applies, such as HTTP("POST /orders/:id/pay").
	// Leave it empty for a rule that is handed to an adapter with its route.
	Endpoint Endpoint

	// Name is the static label of the rule in metrics, spans and logs, and tells
	// the rules of one endpoint apart. Never put request data into it. Default: the
	// endpoint.
	Name string

	// Key is the template of the key, such as "order:pay:#{path.id}".
	Key string

	// Keys is several templates whose keys are taken together, all or none. Exactly
	// one of [Rule.Key] and [Rule.Keys] must be set.
	Keys []string

	// Kind is the kind of lock. Only [Reentrant] can be of several keys. All rules about one
	// key have the same, except that [Read] and [Write] belong together. Default: [Reentrant].
	Kind Kind

	// WaitTime is how long to wait for the lock: 1ms to 87600h (10 years), [NoWait] or
	// [WaitForever]. It ends a little before the caller's deadline in any case.
	// Default: [DefaultWaitTime].
	WaitTime time.Duration

	// LeaseTime is how long the lock is held at most: 1ms to 87600h (10 years), or
	// [Watchdog] for "as long as the handler runs". Default: [Watchdog].
	LeaseTime time.Duration

	// OnBusy answers a lock that stays taken, and a call inside a debounce window. A call is
	// skipped after WaitTime: a job that must run in one instance only has [NoWait].
	// This and the next three: default [failpolicy.Error].
	OnBusy failpolicy.Strategy
	// OnBackend answers a Redis that cannot tell.
	OnBackend failpolicy.Strategy
	// OnKey answers a request that yields no key.
	OnKey failpolicy.Strategy
	// OnOverload answers too many waiters.
	OnOverload failpolicy.Strategy

	// OnLost says what a loss does to the running handler. [failpolicy.Fail] needs a buffer
	// on a route of HTTP: WithBuffer of the adapter. Default: [failpolicy.Cancel].
	OnLost failpolicy.OnLost

	// Fallback is the name of the handler to run where a strategy is
	// [failpolicy.Fallback].
	Fallback string

	// When is a bare boolean expression; the lock is taken only when it is true.
	// Missing values are empty in it. Default: always.
	When string

	// Debounce refuses further calls for this long after one succeeded: without an error,
	// over HTTP with a status of 2xx or 303, and unless the handler has called
	// aspect.CancelDebounce. The lock is held with the watchdog while the handler runs, and
	// no call waits for it. Not with [Read] and [Semaphore], which several calls hold at a
	// time. The window begins when the run ends, so that an hourly job with 1h runs every
	// second hour: write 55m. After an early Release of the lock there is no window.
	Debounce time.Duration

	// MaxWaiters refuses a caller when so many of this process already wait for the
	// key. Default: the client's limit.
	MaxWaiters int

	// Permits is how many calls may run at once under a [Semaphore], across all instances:
	// 1 to 2147483647. It is required there, and only there. All rules about one key have
	// the same. Where processes have different numbers, as while a change is rolled out,
	// the number of the last call counts: a reload that changes it needs
	// [Settings.AllowRekey].
	Permits int

	// Token draws a fencing token with every lock: a number that is larger for every later
	// holder of the key, of which there is one. [Fenced] has one in any case, so that a file
	// which says false beside it is refused; [Read] and [Semaphore], which several calls hold
	// at a time, have none. Of several rules of an endpoint over one key the first draws it
	// for all: a call that asks for it behind one that does not gets an error.
	Token bool

	// Status changes what a refused client sees, per cause. Without it a busy [Semaphore] is
	// 429, RESOURCE_EXHAUSTED; all else is as package failpolicy says.
	Status failpolicy.Statuses

	// Response is the JSON document that [failpolicy.NullResponse] answers with.
	// Default: null, or an empty message.
	Response string

	// Message replaces the text that a refused client sees, whatever the cause: do
	// not say in it that somebody else holds the lock. Default: the cause's title.
	Message string

	// Prefix is put before every key of the rule, after the client's own prefix.
	Prefix string

	// KeyFormat says how values enter the key. Default: [Encode].
	KeyFormat KeyFormat

	// Profile names a set of values for what the rule does not set: see [Profiles].
	Profile string

	// Disabled lets the handler run without the lock, counted.
	Disabled bool

	// DryRun lets the handler run without the lock and counts what would have
	// happened.
	DryRun bool

	// None says that the endpoint needs no lock, on purpose: it takes the endpoint
	// out of a wildcard's reach and answers [Settings.Uncovered]. Nothing is counted.
	// The rule has no other field but its endpoint.
	None bool
}

// ruleFields is the table of the fields of a [Rule], in their order. A new field is a field of
// Rule, a row here, and a field of lock.proto of the same name; its first comment is its
// description in the JSON Schema.
var ruleFields = []*field[Rule]{ //nolint:gochecknoglobals // a table that is only read
	column("endpoint", endpointType{}, func(r *Rule) *Endpoint { return &r.Endpoint }).forOneRule(),
	column("name", labelType{}, func(r *Rule) *string { return &r.Name }).forOneRule(),
	column("key", textType{template}, func(r *Rule) *string { return &r.Key }).forOneRule().insteadOf("keys"),
	column("keys", listType{template}, func(r *Rule) *[]string { return &r.Keys }).forOneRule().insteadOf("key"),
	column("kind", kindType, func(r *Rule) *Kind { return &r.Kind }),
	column("wait_time", waitType, func(r *Rule) *time.Duration { return &r.WaitTime }),
	column("lease_time", leaseType, func(r *Rule) *time.Duration { return &r.LeaseTime }),
	column("on_busy", strategyType, func(r *Rule) *failpolicy.Strategy { return &r.OnBusy }),
	column("on_backend", strategyType, func(r *Rule) *failpolicy.Strategy { return &r.OnBackend }),
	column("on_key", strategyType, func(r *Rule) *failpolicy.Strategy { return &r.OnKey }),
	column("on_overload", strategyType, func(r *Rule) *failpolicy.Strategy { return &r.OnOverload }),
	column("on_lost", onLostType, func(r *Rule) *failpolicy.OnLost { return &r.OnLost }),
	column("fallback", textType{}, func(r *Rule) *string { return &r.Fallback }),
	column("when", conditionType{textType{lines}}, func(r *Rule) *string { return &r.When }),
	column("debounce", timeType{example: 5 * time.Second}, func(r *Rule) *time.Duration { return &r.Debounce }),
	column("max_waiters", numberType{0, math.MaxInt, "0, or leave it out, for the client's limit"}, func(r *Rule) *int { return &r.MaxWaiters }),
	column("permits", numberType{1, math.MaxInt32, "how many calls may run at once, across all instances: 1 to 2147483647"}, func(r *Rule) *int { return &r.Permits }),
	column("token", boolType{}, func(r *Rule) *bool { return &r.Token }),
	column("status", statusesType{}, func(r *Rule) *failpolicy.Statuses { return &r.Status }),
	column("response", documentType{textType{lines}}, func(r *Rule) *string { return &r.Response }),
	column("message", sentenceType{textType{strictyaml.Form{Lines: true, Blank: true, Long: true}}}, func(r *Rule) *string { return &r.Message }),
	column("prefix", prefixType{textType{strictyaml.Form{Blank: true}}}, func(r *Rule) *string { return &r.Prefix }),
	column("key_format", keyFormatType, func(r *Rule) *KeyFormat { return &r.KeyFormat }),
	column("profile", textType{}, func(r *Rule) *string { return &r.Profile }).forOneRule(),
	column("disabled", boolType{}, func(r *Rule) *bool { return &r.Disabled }),
	column("dry_run", boolType{}, func(r *Rule) *bool { return &r.DryRun }),
	column("none", boolType{}, func(r *Rule) *bool { return &r.None }).forOneRule(),
}

// The types of fields that have words or forms of their own. A prefix and a message may be empty,
// so that a rule can do without the one of its profile; the check of the whole rule says more of
// an empty key.
//
//nolint:gochecknoglobals // tables that are only read
var (
	template = strictyaml.Form{Blank: true, Long: true}
	lines    = strictyaml.Form{Lines: true, Long: true}

	waitType  = timeType{5 * time.Second, []time.Duration{NoWait, WaitForever}, map[string]string{"0": "none", "-1": "forever"}}
	leaseType = timeType{30 * time.Second, []time.Duration{Watchdog}, map[string]string{"-1": "watchdog"}}

	kindType      = wordType[Kind]{wordsOf("kind", Kinds())}
	keyFormatType = wordType[KeyFormat]{wordsOf("key_format", []KeyFormat{Encode, Strict})}
	strategyType  = wordType[failpolicy.Strategy]{wordList{words(failpolicy.Strategies()), func(w string) error { return second(failpolicy.ParseStrategy(w)) }}}
	onLostType    = wordType[failpolicy.OnLost]{wordList{words(failpolicy.LossChoices()), func(w string) error { return second(failpolicy.ParseOnLost(w)) }}}
)

// Policy is what the rule says about failures.
func (r *Rule) Policy() failpolicy.Policy {
	return failpolicy.Policy{
		OnBusy: r.OnBusy, OnBackend: r.OnBackend, OnKey: r.OnKey, OnOverload: r.OnOverload,
		OnLost: r.OnLost, Statuses: r.statuses(),
	}
}

// statuses are what a refused client sees. A semaphore without a free permit says that there
// are too many calls, and not that there is another one.
func (r *Rule) statuses() failpolicy.Statuses {
	s := r.Status
	if !r.Kind.Traits().Permits {
		return s
	}
	full := failpolicy.Overload.Status()
	if s.Busy.HTTP == 0 {
		s.Busy.HTTP = full.HTTP
	}
	if s.Busy.GRPC == 0 {
		s.Busy.GRPC = full.GRPC
	}
	return s
}

// Templates are the key templates: Keys, or the one Key.
func (r *Rule) Templates() []string {
	if r.Key != "" {
		return []string{r.Key}
	}
	return r.Keys
}
