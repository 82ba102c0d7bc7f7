package ruleset

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	isoTime  = regexp.MustCompile(`^p(?:([0-9]+)d)?(?:t(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9.]+)s)?)?$`)
	clock    = regexp.MustCompile(`^([0-9]+):([0-5][0-9])(?::([0-5][0-9]))?$`)
	unitTime = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([a-zµμ]+)(?:\s*(?:,|and)?\s*)`)
)

const day = 24 * time.Hour

// unitNames are the units as people write them.
var unitNames = map[string]time.Duration{ //nolint:gochecknoglobals // a table that is only read
	"ns": time.Nanosecond, "nanos": time.Nanosecond, "nanoseconds": time.Nanosecond,
	"us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, "micros": time.Microsecond, "microseconds": time.Microsecond,
	"ms": time.Millisecond, "msec": time.Millisecond, "msecs": time.Millisecond, "milli": time.Millisecond, "millis": time.Millisecond,
	"millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": day, "day": day, "days": day, "w": 7 * day, "week": 7 * day, "weeks": 7 * day,
}

// meantTime is the time that a text of lower case probably stands for, 0 if that is
// not clear.
func meantTime(text string) time.Duration {
	text = strings.TrimPrefix(text, "+")
	if wholeNumber.MatchString(text) && (text[0] != '0' || strings.Contains(text, ".")) {
		text += "s" // what the Java annotation counts in
	}
	if m := isoTime.FindStringSubmatch(text); m != nil {
		return sum(m[1:], day, time.Hour, time.Minute, time.Second)
	}
	if m := clock.FindStringSubmatch(text); m != nil && m[3] == "" {
		return sum(m[1:3], time.Minute, time.Second)
	} else if m != nil {
		return sum(m[1:], time.Hour, time.Minute, time.Second)
	}
	return unitSum(text)
}

// unitSum adds up "1 hour and 30 minutes".
func unitSum(text string) time.Duration {
	var total time.Duration
	for text != "" {
		m := unitTime.FindStringSubmatch(text)
		if m == nil || unitNames[m[2]] == 0 {
			return 0
		}
		total += sum(m[1:2], unitNames[m[2]])
		text = text[len(m[0]):]
	}
	return total
}

// sum adds up numbers of units; what is empty counts as 0, and so does what would be
// out of range.
func sum(numbers []string, units ...time.Duration) time.Duration {
	var total time.Duration
	for i, number := range numbers {
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || n > float64(MaxDuration/units[i]) {
			continue
		}
		total += time.Duration(n * float64(units[i]))
	}
	return total
}
