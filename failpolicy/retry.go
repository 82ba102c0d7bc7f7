package failpolicy

import "time"

// The bounds of the hint after [Busy] and [Overload].
const (
	// minRetry is the shortest hint; also that of an unknown estimate.
	minRetry = time.Second
	// maxRetry is the longest hint, however long the lease.
	maxRetry = 5 * time.Second
)

// RetryAfter is the hint when a client may sensibly try again; 0 means none.
//
// estimate is what is known about the end of the obstacle, 0 or less when nothing
// is: after [Busy] the rest of a fixed lease or the rule's recent hold time, after
// [Debounced] the rest of the window. random is in [0, 1), such as
// [math/rand/v2.Float64]; it spreads clients that were refused together.
//
//   - [Busy], [Overload]: the estimate within 1 s and 5 s, give or
//     take a quarter.
//   - [Debounced]: the estimate, not spread (the next call is a new intention, not
//     a herd), in whole seconds once it is longer than one; 1 s if unknown.
//   - [Backend]: 1 to 2 s.
//   - every other cause: none. A repeated bad request stays bad, and repeating
//     after a loss may do the work twice.
func RetryAfter(c Cause, estimate time.Duration, random float64) time.Duration {
	switch c {
	case Busy, Overload:
		return spread(min(max(estimate, minRetry), maxRetry), random)
	case Backend:
		return between(minRetry, 2*minRetry, random)
	case Debounced:
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

// RetryAfterSeconds is the value of an HTTP Retry-After header for a hint: whole
// seconds, rounded to the nearest, at least 1. 0 for no hint.
func RetryAfterSeconds(hint time.Duration) int {
	if hint <= 0 {
		return 0
	}
	return max(1, int(hint.Round(time.Second)/time.Second))
}
