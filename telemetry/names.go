package telemetry

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/interlock-go/interlock/core"
)

// scopeName is the instrumentation scope of the tracer and the meter.
const scopeName = "github.com/interlock-go/interlock/telemetry"

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
	eventHeldTooLong   = "held_too_long"
)

// attrPrefix is the prefix of the attributes of this package.
const attrPrefix = "distributed_lock."

// The attributes of spans and labels of metrics.
const (
	attrRule      = attribute.Key(attrPrefix + "rule")
	attrKind      = attribute.Key(attrPrefix + "kind")
	attrOutcome   = attribute.Key(attrPrefix + "outcome")
	attrCause     = attribute.Key(attrPrefix + "cause")
	attrStrategy  = attribute.Key(attrPrefix + "strategy")
	attrReason    = attribute.Key(attrPrefix + "reason")
	attrState     = attribute.Key(attrPrefix + "state")
	attrClientID  = attribute.Key(attrPrefix + "client.id")
	attrKey       = attribute.Key(attrPrefix + "key")
	attrKeyHash   = attribute.Key(attrPrefix + "key_hash")
	attrAttempts  = attribute.Key(attrPrefix + "attempts")
	attrReentry   = attribute.Key(attrPrefix + "reentry")
	attrToken     = attribute.Key(attrPrefix + "token")
	attrHolder    = attribute.Key(attrPrefix + "holder")
	attrBlockedBy = attribute.Key(attrPrefix + "blocked_by")
	attrLate      = attribute.Key(attrPrefix + "late")
	attrHash      = attribute.Key(attrPrefix + "hash")
	attrErrorType = attribute.Key("error.type") // defined by OpenTelemetry's semantic conventions
)

// Outcomes that package core does not define.
const (
	outcomeDebounced = "debounced" // inside a debounce window

	outcomeReleased    = "released"
	outcomeLeft        = "left"
	outcomeMoved       = "moved" // on spans only
	outcomeLost        = "lost"
	outcomeHeldTooLong = "held_too_long"
	outcomeFailed      = "failed"
	outcomeLeaked      = "leaked"

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

// Names of rules that stand for no rule or for several, and the strategy of a cause that has none.
const (
	ruleNone     = "none"
	ruleOther    = "other"
	strategyNone = "none"
)

// durationBuckets returns the bucket boundaries of the wait, acquire and hold histograms, in seconds, in a new slice. The
// alert InterlockWaitNearLimit in examples/dashboards/rules.yml contains the last one.
func durationBuckets() []float64 {
	return []float64{
		0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
	}
}

// ratios returns the bucket boundaries of a ratio. 0 has a separate bucket.
func ratios() []float64 {
	return []float64{0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
}

// errorWrongType is the error type of a key that holds something other than a lock.
const errorWrongType = "wrong_type"

// errorType returns the value of error.type, a word of a short list.
func errorType(err error) string {
	var timeout interface{ Timeout() bool }
	var reply interface {
		error
		RedisError()
	}
	switch {
	case errors.Is(err, core.ErrHeldTooLong):
		return outcomeHeldTooLong
	case errors.Is(err, core.ErrLost):
		return outcomeLost
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &reply):
		if strings.Contains(reply.Error(), "WRONGTYPE") { // the error of a script has other words before it
			return errorWrongType
		}
		return "redis_error"
	case errors.Is(err, core.ErrUnavailable):
		return "unavailable"
	default:
		return "_OTHER" // the value that the semantic conventions reserve for other errors
	}
}

// valid replaces bytes that are not UTF-8: an exporter refuses a whole batch for one such string. It does not
// allocate for a valid string.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
