package protorules

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

// parseDuration reads a duration as in a rule file.
func parseDuration(field, text string) (time.Duration, error) {
	switch text {
	case "none":
		return ruleset.NoWait, nil
	case "forever":
		return ruleset.WaitForever, nil
	case "watchdog":
		return ruleset.Watchdog, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is no duration: write one such as \"10s\"", field, text)
	}
	return d, nil
}
