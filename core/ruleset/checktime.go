package ruleset

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/missingunit"
)

func (c *checker) checkWait() {
	d, at := c.rule.WaitTime, c.rule.placeOf("wait_time")
	switch {
	case d == NoWait || d == WaitForever:
	case d == Watchdog:
		c.reportf("wait_time", "the watchdog belongs to %s: write a time such as %s, %s or %s",
			at.spell("lease_time"), at.duration(5*time.Second), at.duration(NoWait), at.duration(WaitForever))
	case d == 0:
		c.reportf("wait_time", "0 says nothing here: write %s for a single attempt", at.duration(NoWait))
	case d < time.Millisecond || d > MaxDuration:
		c.reportf("wait_time", "%s is out of range: write 1ms to %s, %s or %s%s",
			shortTime(d), shortTime(MaxDuration), at.duration(NoWait), at.duration(WaitForever), at.unitHint(d))
	}
}

func (c *checker) checkLease() {
	d, at := c.rule.LeaseTime, c.rule.placeOf("lease_time")
	switch {
	case d == Watchdog:
	case d == NoWait || d == WaitForever:
		c.reportf("lease_time", "%s belongs to %s: write a time such as %s, or %s",
			at.duration(d), at.spell("wait_time"), at.duration(30*time.Second), at.duration(Watchdog))
	case d < time.Millisecond || d > MaxDuration:
		c.reportf("lease_time", "%s is out of range: write 1ms to %s, or %s%s",
			shortTime(d), shortTime(MaxDuration), at.duration(Watchdog), at.unitHint(d))
	}
}

func (c *checker) checkWindow() {
	d, at := c.rule.Debounce, c.rule.placeOf("debounce")
	if d < 0 && d > Watchdog || d > 0 && d < time.Millisecond || d > MaxDuration {
		c.reportf("debounce", "%s is out of range: write 1ms to %s, such as %s%s", shortTime(d), shortTime(MaxDuration), at.duration(5*time.Second), at.unitHint(d))
	} else if _, ok := sentinels[d]; ok {
		c.reportf("debounce", "%s is no window: write a time such as %s", at.duration(d), at.duration(5*time.Second))
	}
}

// unitHint recognises a bare number in Go.
func (s Source) unitHint(d time.Duration) string {
	if s.inFile() {
		return ""
	}
	return missingunit.Hint(d)
}
