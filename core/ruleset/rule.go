package ruleset

import (
	"math"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

// Values for the durations of a [Rule]. A zero duration is not set, so these times have special values,
// which a [Resolved] rule contains too.
const (
	// NoWait as WaitTime makes one attempt, in one round trip, as core.WaitTime(0) does.
	NoWait time.Duration = math.MinInt64 + 1 + iota
	// WaitForever as WaitTime waits until the caller's context is done.
	WaitForever
	// Watchdog as LeaseTime renews the lease until the handler returns.
	Watchdog
)

// The built-in defaults of a rule.
const (
	// DefaultWaitTime is the wait time of a rule that sets none.
	DefaultWaitTime = 10 * time.Second
	// DefaultLeaseTime is the lease time of a rule that sets none.
	DefaultLeaseTime = Watchdog
)

const (
	// maxDuration is the longest wait time, lease time and window: core.MaxDuration.
	maxDuration = 10 * 365 * 24 * time.Hour

	maxNameLength = strictyaml.MaxName
	maxTemplates  = 100
)

// KeyFormat selects how values enter a key.
type KeyFormat string

// The key formats.
const (
	// Encode percent-encodes the characters that would make two keys ambiguous. It is the default.
	Encode KeyFormat = "encode"
	// Strict refuses values with such characters, with cause [failpolicy.Key]. Use it for keys that
	// the service shares with programs which do not encode.
	Strict KeyFormat = "strict"
)

// Rule says which lock to take around an endpoint, and what to do without the lock. A zero field is not
// set; see the package comment. Only Key or Keys is required.
type Rule struct {
	// Endpoint is the place where the rule applies, such as HTTP("POST /orders/:id/pay"). Leave it
	// empty for a rule that an adapter gets together with its route.
	Endpoint Endpoint

	// Name is the static label of the rule in metrics, spans and logs. It distinguishes the rules of
	// one endpoint. Never put request data into it. Default: the endpoint.
	Name string

	// Key is the template of the key, such as "order:pay:#{path.id}".
	Key string

	// Keys is a list of templates whose keys are taken together, all or none. Set exactly one of
	// [Rule.Key] and [Rule.Keys].
	Keys []string

	// Kind is the kind of lock. Only [Reentrant] can have several keys. All rules of one key have the
	// same kind, except that [Read] and [Write] belong together. Default: [Reentrant].
	Kind Kind

	// WaitTime is the longest time to wait for the lock: 1ms to 87600h (10 years), [NoWait] or
	// [WaitForever]. The wait ends a little before the caller's deadline in any case.
	// Default: [DefaultWaitTime].
	//
	// In Go a literal 0 is not set either, and so waits for 10 s: write [NoWait] for no wait. A rule file and a .proto
	// refuse a zero.
	WaitTime time.Duration

	// LeaseTime is the longest time to hold the lock: 1ms to 87600h (10 years), or [Watchdog] to hold
	// it until the handler returns. Default: [Watchdog].
	LeaseTime time.Duration

	// MaxHold is the longest time for which the watchdog renews the lock, from its acquisition: 1ms to
	// 87600h (10 years). After that the lock counts as lost: see [Rule.OnLost]. It is free when the
	// handler has returned, at the latest one lease of the watchdog (30 s) later. A fixed
	// [Rule.LeaseTime] has no limit. Default: no limit.
	MaxHold time.Duration

	// OnBusy answers a call that could not take the lock within WaitTime, and a call inside a debounce
	// window. To run a job in one instance only, set it to [failpolicy.Skip] and WaitTime to [NoWait].
	// The default of this field and of the next three is [failpolicy.Error].
	OnBusy failpolicy.Strategy
	// OnBackend answers a call while Redis cannot say whether the lock is free.
	OnBackend failpolicy.Strategy
	// OnKey answers a request that yields no key.
	OnKey failpolicy.Strategy
	// OnOverload answers a call that finds too many waiters.
	OnOverload failpolicy.Strategy

	// OnLost says what the loss of the lock does to the running handler. On an HTTP route,
	// [failpolicy.Fail] needs a buffer: WithBuffer of the adapter. Default: [failpolicy.Cancel].
	OnLost failpolicy.OnLost

	// Fallback is the name of the handler that runs where a strategy is [failpolicy.Fallback].
	Fallback string

	// When is a bare boolean expression. The lock is taken only when it is true. Missing values are
	// empty in it. Default: always.
	When string

	// Debounce refuses further calls for this long after a call succeeded. A call succeeds if the
	// handler returns no error, if its HTTP status is 2xx or 303, and if it has not called
	// aspect.CancelDebounce. The watchdog holds the lock while the handler runs, and no call waits
	// for it. [Read] and [Semaphore] have no window, because several calls hold them at a time.
	//
	// The window begins when the run ends: an hourly job with a window of 1h runs every second hour,
	// so write 55m. A handler that releases the lock early starts no window.
	Debounce time.Duration

	// MaxWaiters refuses a call when so many calls of this process already wait for the key.
	// Default: the client's limit.
	MaxWaiters int

	// Permits is the number of calls that may run at once under a [Semaphore], across all instances:
	// 1 to 2147483647. A semaphore needs it, and no other kind has it. All rules of one key have the
	// same number.
	//
	// While a rollout changes the number, the number of the latest call applies. A reload that
	// changes the number needs [Settings.AllowRekey].
	Permits int

	// Token draws a fencing token with every lock. Each later holder of the key has a larger number.
	// A lock of kind [Fenced] always has a token, so its rule must not set this field to false in a
	// file. [Read] and [Semaphore] have none, because several calls hold them at a time.
	//
	// Among several rules of an endpoint over one key, the first rule draws the token for all of them.
	// The call fails if a later rule asks for a token and the first one does not.
	Token bool

	// Status changes the status that a refused client sees, for each cause. By default the status is
	// as package failpolicy says, except that a busy [Semaphore] is 429, RESOURCE_EXHAUSTED.
	Status failpolicy.Statuses

	// Response is the JSON document with which [failpolicy.NullResponse] answers.
	// Default: null, or an empty message.
	Response string

	// Message replaces the text that a refused client sees, whatever the cause. Do not say in it that
	// another client holds the lock. Default: the title of the cause.
	Message string

	// Prefix precedes every key of the rule. The client's own prefix precedes it.
	Prefix string

	// KeyFormat says how values enter the key. Default: [Encode].
	KeyFormat KeyFormat

	// Profile is the name of a set of values for the fields that the rule does not set: see [Profiles].
	Profile string

	// Disabled runs the handler without the lock. Such calls are counted.
	Disabled bool

	// DryRun runs the handler without the lock, and counts what would have happened with it.
	DryRun bool

	// None declares that the endpoint needs no lock. It takes the endpoint out of the reach of wildcards,
	// and satisfies [Settings.Uncovered]. Nothing is counted. The rule has no other field but its
	// endpoint.
	None bool
}

// Policy returns what the rule says about failures.
func (r *Rule) Policy() failpolicy.Policy {
	return failpolicy.Policy{
		OnBusy: r.OnBusy, OnBackend: r.OnBackend, OnKey: r.OnKey, OnOverload: r.OnOverload,
		OnLost: r.OnLost, Statuses: r.statuses(),
	}
}

// statuses returns the statuses that a refused client sees. A busy semaphore means that too many calls run,
// not that another call holds the lock. So its status is the status of an overload.
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

// Templates returns the templates of the keys: Keys, or the one Key.
func (r *Rule) Templates() []string {
	if r.Key != "" {
		return []string{r.Key}
	}
	return r.Keys
}

// goNames maps the names of the fields outside Go to the fields of [Rule]: "wait_time" to "WaitTime".
var goNames = func() map[string]string { //nolint:gochecknoglobals // a table that is only read
	names := map[string]string{}
	for field := range reflect.TypeFor[Rule]().Fields() {
		var outside strings.Builder
		for i, c := range field.Name {
			if i > 0 && unicode.IsUpper(c) {
				outside.WriteByte('_')
			}
			outside.WriteRune(unicode.ToLower(c))
		}
		names[outside.String()] = field.Name
	}
	return names
}()

// goName returns the name in Go of a field or of a part of one, such as "keys[2]". Other words stay
// unchanged.
func goName(field string) string {
	base, rest := cutField(field)
	if name, ok := goNames[base]; ok {
		return name + rest
	}
	return field
}

// sentinels lists the durations that stand for something other than a time, with their names in Go and
// in files, and the field to which they belong.
var sentinels = map[time.Duration]struct{ goName, word, field string }{ //nolint:gochecknoglobals // a table that is only read
	NoWait:      {"NoWait", "none", "wait_time"},
	WaitForever: {"WaitForever", "forever", "wait_time"},
	Watchdog:    {"Watchdog", "watchdog", "lease_time"},
}

// durationWord returns a duration in the notation of a file.
func durationWord(d time.Duration) string {
	if s, ok := sentinels[d]; ok {
		return s.word
	}
	return shortTime(d)
}

// shortTime returns the String of a time without zero minutes and seconds.
func shortTime(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
