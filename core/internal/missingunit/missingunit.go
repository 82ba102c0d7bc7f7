// Package missingunit guesses what a number without a unit was meant to count. Other lock libraries
// take milliseconds or seconds; Go takes a bare number for nanoseconds.
package missingunit

import (
	"strconv"
	"strings"
	"time"
)

// Unit is what a number may count.
type Unit struct {
	Name string // as in 3s

	goName   string
	from, to float64 // the numbers that are likely to count it
}

// A small number of milliseconds is no time to wait, and a large one of seconds is longer than a
// day. No time of a lock is longer than ten years.
var units = []Unit{ //nolint:gochecknoglobals // a table that is only read
	{"ms", "time.Millisecond", 100, float64(10 * 365 * 24 * time.Hour / time.Millisecond)},
	{"s", "time.Second", 0.001, float64(24 * time.Hour / time.Second)},
}

// Plausible are the units that a number probably counts.
func Plausible(n float64) []Unit {
	var list []Unit
	for _, u := range units {
		if n >= u.from && n <= u.to {
			list = append(list, u)
		}
	}
	return list
}

// Hint says of a time in Go code that is too short what was probably meant, to go behind the error;
// "" if nothing was.
func Hint(d time.Duration) string {
	if d <= 0 || d >= time.Millisecond {
		return ""
	}
	number := strconv.FormatInt(int64(d), 10)
	var meant []string
	for _, u := range Plausible(float64(d)) {
		meant = append(meant, number+"*"+u.goName)
	}
	return " (is a unit missing? " + strings.Join(meant, " or ") + ")"
}
