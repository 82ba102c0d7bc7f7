package telemetry

import "go.opentelemetry.io/otel/attribute"

// ScopeName is the instrumentation scope of the tracer and the meter.
const ScopeName = "github.com/interlock-go/interlock/telemetry"

// The spans.
const (
	spanAcquire = "lock.acquire"
	spanHold    = "lock.hold"
)

// The events of spans.
const (
	eventContended     = "contended"
	eventHandedOver    = "handed_over"
	eventRenewedLate   = "renewed_late"
	eventRenewalFailed = "renewal_failed"
	eventLost          = "lost"
)

// The attributes of spans and labels of metrics.
const (
	attrRule      = attribute.Key("distributed_lock.rule")
	attrKind      = attribute.Key("distributed_lock.kind")
	attrOutcome   = attribute.Key("distributed_lock.outcome")
	attrCause     = attribute.Key("distributed_lock.cause")
	attrStrategy  = attribute.Key("distributed_lock.strategy")
	attrReason    = attribute.Key("distributed_lock.reason")
	attrState     = attribute.Key("distributed_lock.state")
	attrClientID  = attribute.Key("distributed_lock.client.id")
	attrKey       = attribute.Key("distributed_lock.key")
	attrKeyHash   = attribute.Key("distributed_lock.key_hash")
	attrAttempts  = attribute.Key("distributed_lock.attempts")
	attrReentry   = attribute.Key("distributed_lock.reentry")
	attrToken     = attribute.Key("distributed_lock.token")
	attrHolder    = attribute.Key("distributed_lock.holder")
	attrBlockedBy = attribute.Key("distributed_lock.blocked_by")
	attrLate      = attribute.Key("distributed_lock.late")
	attrHash      = attribute.Key("distributed_lock.hash")
	attrErrorType = attribute.Key("error.type") // as OpenTelemetry's semantic conventions have it
)

// Outcomes beyond those of package core.
const (
	outcomeDebounced = "debounced" // inside a debounce window

	outcomeReleased = "released"
	outcomeLeft     = "left"
	outcomeMoved    = "moved" // on spans only
	outcomeLost     = "lost"
	outcomeFailed   = "failed"
	outcomeLeaked   = "leaked"

	outcomeRenewed = "renewed"
	outcomeLate    = "late"

	outcomeApplied = "applied"
	outcomeRefused = "refused"
)

// The states of rules.
const (
	stateEnabled  = "enabled"
	stateDisabled = "disabled"
	stateDryRun   = "dry_run"
)

// Rules that are not a rule, and the strategy of a cause that asks for none.
const (
	ruleNone     = "none"
	ruleOther    = "other"
	strategyNone = "none"
)

// Buckets are the bucket boundaries of the duration histograms, in seconds. It
// returns a new slice.
func Buckets() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}
