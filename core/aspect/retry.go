package aspect

import (
	"time"

	"github.com/interlock-go/interlock/failpolicy"
)

// The bounds of the hint after [failpolicy.Busy] and [failpolicy.Overload].
const (
	// minRetry is the shortest hint, and the hint if the estimate is unknown.
	minRetry = time.Second
	// maxRetry is the longest hint for these two causes, however long the lease.
	maxRetry = 5 * time.Second
)

// retryAfter returns the time after which a client should try again; 0 for no hint.
//
// estimate is the time until the obstacle ends, 0 or less if it is unknown. After [failpolicy.Busy] it is the rest
// of a fixed lease or the recent hold time of the rule, after [failpolicy.Debounced] the rest of the window. random
// is in [0, 1), for example from [math/rand/v2.Float64]. It spreads clients that were refused at the same time.
//
//   - [failpolicy.Busy], [failpolicy.Overload]: a random time near the estimate, between 1 s and 5 s: see spread.
//   - [failpolicy.Debounced]: the estimate, rounded up to whole seconds if it is longer than one; 1 s if unknown. It is
//     not spread, because few clients retry when a window ends.
//   - [failpolicy.Backend]: 1 to 2 s.
//   - every other cause: no hint. A repeated bad request stays bad, and repeating a call after a loss may do the
//     work twice.
func retryAfter(c failpolicy.Cause, estimate time.Duration, random float64) time.Duration {
	switch c {
	case failpolicy.Busy, failpolicy.Overload:
		return spread(min(max(estimate, minRetry), maxRetry), random)
	case failpolicy.Backend:
		return between(minRetry, 2*minRetry, random)
	case failpolicy.Debounced:
		return roundUpToSeconds(estimate)
	default:
		return 0
	}
}

// spread returns a random value that differs from d by at most a quarter of d, or by at most half a second if that is
// more. A range that crosses a bound is moved inside the bounds and keeps its width: 1 s becomes 1 to 2 s. A narrower
// range would spread the clients less.
func spread(d time.Duration, random float64) time.Duration {
	reach := max(d/4, minRetry/2)
	low := max(d-reach, minRetry)
	high := min(low+2*reach, maxRetry)
	return between(high-2*reach, high, random)
}

// between maps random, from 0 to 1, to the range from low to high. If random is out of range, it returns the middle.
func between(low, high time.Duration, random float64) time.Duration {
	if !(random >= 0 && random < 1) { // NaN too
		random = 0.5
	}
	return low + time.Duration(random*float64(high-low))
}

// longestWindow is longer than any window. It keeps roundUpToSeconds from overflowing.
const longestWindow = 100 * 365 * 24 * time.Hour

// roundUpToSeconds rounds a hint of more than one second up to whole seconds.
func roundUpToSeconds(d time.Duration) time.Duration {
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
