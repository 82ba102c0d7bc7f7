package aspect

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// decision is the answer of a rule to a cause.
type decision struct {
	cause    failpolicy.Cause
	strategy failpolicy.Strategy // [failpolicy.Error] for a cause that asks no strategy
	status   failpolicy.Status   // for a client that is refused
	program  bool                // the program is at fault, and not the request
}

// decide answers a cause.
func (c *compiled) decide(cause failpolicy.Cause) decision {
	return decision{cause: cause, strategy: c.policy.Strategy(cause), status: c.policy.Statuses.Status(cause)}
}

// decideKey answers [failpolicy.Key] with the status that the rule sets, or else with the status of [keyStatus].
// A fault of the program is an error with 500 whatever the rule says, so that it is found before it is live.
func (c *compiled) decideKey(status int) decision {
	if status == http.StatusInternalServerError {
		return decision{failpolicy.Key, failpolicy.Error, failpolicy.Cause("").Status(), true}
	}
	d := c.decide(failpolicy.Key)
	if c.policy.Statuses.Key.HTTP == 0 {
		d.status.HTTP = status
	}
	return d
}

// keyStatus is the status of a request that yields no key: 500 if the program is at fault.
func keyStatus(err error) int {
	e, ok := errors.AsType[*keyexpr.EvalError](err)
	if !ok {
		return http.StatusInternalServerError
	}
	switch e.Reason {
	case keyexpr.ReasonTooLarge:
		return http.StatusRequestEntityTooLarge
	case keyexpr.ReasonUnsupportedMedia:
		return http.StatusUnsupportedMediaType
	case keyexpr.ReasonUnset, keyexpr.ReasonInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}

// hint is when the client may sensibly try again.
func (c *compiled) hint(cause failpolicy.Cause, err error) time.Duration {
	estimate := time.Duration(c.recent.Load())
	if refused, ok := errors.AsType[*core.NotAcquiredError](err); ok {
		switch {
		case cause == failpolicy.Debounced:
			// While the first call still runs, its lease says nothing about the window.
			estimate = min(refused.RetryAfter, c.Debounce)
		case !c.watchdog() && refused.RetryAfter > 0:
			estimate = refused.RetryAfter
		}
	}
	return retryAfter(cause, estimate, rand.Float64())
}

// The bounds of the hint after [failpolicy.Busy] and [failpolicy.Overload].
const (
	// minRetry is the shortest hint, and the hint where the estimate is not known.
	minRetry = time.Second
	// maxRetry is the longest hint, however long the lease.
	maxRetry = 5 * time.Second
)

// retryAfter is the hint when a client may sensibly try again; 0 means none.
//
// estimate is what is known about the end of the obstacle, 0 or less when nothing
// is: after [failpolicy.Busy] the rest of a fixed lease or the rule's recent hold time, after
// [failpolicy.Debounced] the rest of the window. random is in [0, 1), such as
// [math/rand/v2.Float64]; it spreads clients that were refused together.
//
//   - [failpolicy.Busy], [failpolicy.Overload]: the estimate within 1 s and 5 s, give or
//     take a quarter.
//   - [failpolicy.Debounced]: the estimate, not spread (the next call is a new intention, not
//     a herd), in whole seconds once it is longer than one; 1 s if unknown.
//   - [failpolicy.Backend]: 1 to 2 s.
//   - every other cause: none. A repeated bad request stays bad, and repeating
//     after a loss may do the work twice.
func retryAfter(c failpolicy.Cause, estimate time.Duration, random float64) time.Duration {
	switch c {
	case failpolicy.Busy, failpolicy.Overload:
		return spread(min(max(estimate, minRetry), maxRetry), random)
	case failpolicy.Backend:
		return between(minRetry, 2*minRetry, random)
	case failpolicy.Debounced:
		return wholeSeconds(estimate)
	default:
		return 0
	}
}

// spread gives d or take a quarter, but at least half a second each way, moved
// into the bounds: a clamp would put the herd together again.
func spread(d time.Duration, random float64) time.Duration {
	reach := max(d/4, minRetry/2)
	low := max(d-reach, minRetry)
	high := min(low+2*reach, maxRetry)
	return between(high-2*reach, high, random)
}

func between(low, high time.Duration, random float64) time.Duration {
	if !(random >= 0 && random < 1) { // NaN too
		random = 0.5
	}
	return low + time.Duration(random*float64(high-low))
}

// longestWindow keeps rounding up from overflowing; no window is that long.
const longestWindow = 100 * 365 * 24 * time.Hour

func wholeSeconds(d time.Duration) time.Duration {
	switch {
	case d <= 0:
		return minRetry
	case d <= time.Second:
		return d
	case d > longestWindow:
		return longestWindow
	default:
		return (d + time.Second - 1).Truncate(time.Second)
	}
}
