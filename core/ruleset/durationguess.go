package ruleset

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/missingunit"
)

// clock is 1:30:00 or 1:30.
var clock = regexp.MustCompile(`^(?:(\d+):)?(\d+):(\d+)$`)

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

// bareTimes are the times that a number without a unit probably stands for, as it is
// written: a wrong guess must not become a much longer time.
func bareTimes(text string) []string {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !wholeNumber.MatchString(text) || text[0] == '0' && !strings.Contains(text, ".") {
		return nil
	}
	var times []string
	for _, unit := range missingunit.Plausible(n) {
		times = append(times, text+unit.Name)
	}
	return times
}

var timeParts = regexp.MustCompile(`([\d.]+)\s*([a-zµμ]+)[\s,]*`)

// meantTime is the time that a text of lower case probably stands for, such as 1 hour and
// 30 minutes, 1:30:00 or PT1H30M; 0 if that is not clear.
func meantTime(text string) time.Duration {
	if m := clock.FindStringSubmatch(text); m != nil {
		text = strings.TrimPrefix(m[1]+"h"+m[2]+"m"+m[3]+"s", "h")
	} else if strings.HasPrefix(text, "p") {
		text = strings.ReplaceAll(text[1:], "t", "")
	}
	text = strings.ReplaceAll(text, "and", "")
	if strings.TrimSpace(timeParts.ReplaceAllString(text, "")) != "" {
		return 0
	}
	var total time.Duration
	for _, part := range timeParts.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(part[1], 64)
		unit := unitNames[part[2]]
		if err != nil || unit == 0 || n > float64(MaxDuration/unit) {
			return 0
		}
		total += time.Duration(n * float64(unit))
	}
	return total
}
