package core

import (
	"fmt"
	"time"
)

// unitHint says of a time that is too short what was probably meant, to go behind the error:
// Go takes a bare number for nanoseconds. A few milliseconds are no time to wait, and more than
// a day of seconds is none either. The same as package ruleset says of rules.
func unitHint(d time.Duration) string {
	const fewMillis, daySeconds = 100, 24 * 60 * 60
	switch {
	case d <= 0 || d >= time.Millisecond:
		return ""
	case d < fewMillis:
		return fmt.Sprintf(" (is a unit missing? %d*time.Second)", d)
	case d > daySeconds:
		return fmt.Sprintf(" (is a unit missing? %d*time.Millisecond)", d)
	default:
		return fmt.Sprintf(" (is a unit missing? %d*time.Millisecond or %[1]d*time.Second)", d)
	}
}
