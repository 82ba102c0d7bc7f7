// Package missingunit guesses the unit of a number that was written without one. Other lock libraries
// take milliseconds or seconds; Go takes a bare number for nanoseconds.
//
// It knows only which numbers are plausible for the times of a lock, and has no state. The options
// of core and the rules of core/ruleset add its guess to their errors.
package missingunit

import (
	"strconv"
	"strings"
	"time"
)

// Unit is a unit of time that a number may have.
type Unit struct {
	Name string // the suffix, as in 3s

	goName   string
	from, to float64 // the range of plausible numbers
}

// units holds the ranges. Fewer than 100 milliseconds are too short to wait, and a large number of
// seconds is longer than a day. No time of a lock is longer than ten years.
var units = []Unit{ //nolint:gochecknoglobals // a table that is only read
	{"ms", "time.Millisecond", 100, float64(10 * 365 * 24 * time.Hour / time.Millisecond)},
	{"s", "time.Second", 0.001, float64(24 * time.Hour / time.Second)},
}

// Plausible returns the units that a number probably has.
func Plausible(n float64) []Unit {
	var list []Unit
	for _, u := range units {
		if n >= u.from && n <= u.to {
			list = append(list, u)
		}
	}
	return list
}

// Hint returns a suffix for the error about a duration in Go code that is too short. The suffix suggests the
// durations that the caller probably meant. Hint returns "" if the duration does not look like a number without a unit.
func Hint(d time.Duration) string {
	if d <= 0 || d >= time.Millisecond {
		return ""
	}
	number := strconv.FormatInt(int64(d), 10)
	var suggestions []string
	for _, u := range Plausible(float64(d)) {
		suggestions = append(suggestions, number+"*"+u.goName)
	}
	return " (is a unit missing? " + strings.Join(suggestions, " or ") + ")"
}
