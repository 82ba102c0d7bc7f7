package ruleset

import (
	"strconv"
	"strings"
	"time"
)

func (c *checker) checkWait() {
	d := c.rule.WaitTime
	switch {
	case d == NoWait || d == WaitForever:
	case d == Watchdog:
		c.reportf("wait_time", "the watchdog belongs to %s: write a time such as %s, %s or %s",
			c.spell("lease_time"), c.duration(5*time.Second), c.spell("NoWait"), c.spell("WaitForever"))
	case d == 0:
		c.reportf("wait_time", "0 says nothing here: write %s for a single attempt", c.spell("NoWait"))
	case d < time.Millisecond || d > MaxDuration:
		c.reportf("wait_time", "%s is out of range: write 1ms to %s, %s or %s%s",
			shortTime(d), shortTime(MaxDuration), c.spell("NoWait"), c.spell("WaitForever"), c.unitHint(d))
	}
}

func (c *checker) checkLease() {
	d := c.rule.LeaseTime
	switch {
	case d == Watchdog:
	case d == NoWait || d == WaitForever:
		c.reportf("lease_time", "%s belongs to %s: write a time such as %s, or %s",
			c.spell(sentinelName(d)), c.spell("wait_time"), c.duration(30*time.Second), c.spell("Watchdog"))
	case d < time.Millisecond || d > MaxDuration:
		c.reportf("lease_time", "%s is out of range: write 1ms to %s, or %s%s",
			shortTime(d), shortTime(MaxDuration), c.spell("Watchdog"), c.unitHint(d))
	}
}

func (c *checker) checkWindow() {
	d := c.rule.Debounce
	if d < 0 && d > Watchdog || d > 0 && d < time.Millisecond || d > MaxDuration {
		c.reportf("debounce", "%s is out of range: write 1ms to %s, such as %s%s", shortTime(d), shortTime(MaxDuration), c.duration(5*time.Second), c.unitHint(d))
	} else if name := sentinelName(d); name != "" {
		c.reportf("debounce", "%s is no window: write a time such as %s", c.spell(name), c.duration(5*time.Second))
	}
}

// unitHint recognises a bare number, which Go takes for nanoseconds.
func (c *checker) unitHint(d time.Duration) string {
	if d <= 0 || d >= time.Millisecond || c.inFile() {
		return ""
	}
	number := strconv.FormatInt(int64(d), 10)
	var meant []string
	for _, unit := range plausibleUnits(float64(d)) {
		meant = append(meant, number+"*"+unit.goName)
	}
	return " (is a unit missing? " + strings.Join(meant, " or ") + ")"
}
