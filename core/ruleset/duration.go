package ruleset

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/failpolicy"
)

// timeForm is what a duration may be besides a time, and what else to say.
type timeForm struct {
	words   []string          // of the field
	meant   map[string]string // what other words stand for
	example string
}

var timeForms = map[string]timeForm{ //nolint:gochecknoglobals // a table that is only read
	"wait_time": {
		words: []string{"none", "forever"}, example: "5s, none or forever",
		meant: map[string]string{
			"0": "none", "no": "none", "nowait": "none", "zero": "none", "once": "none", "immediately": "none",
			"-1": "forever", "infinite": "forever", "infinity": "forever", "unlimited": "forever", "max": "forever", "always": "forever",
		},
	},
	"lease_time": {
		words: []string{"watchdog"}, example: "30s, or watchdog",
		meant: map[string]string{
			"-1": "watchdog", "auto": "watchdog", "renew": "watchdog", "infinite": "watchdog", "infinity": "watchdog", "unlimited": "watchdog", "max": "watchdog",
		},
	},
	"debounce": {example: "5s"},
}

// sentinelWords are the durations that are no times.
var sentinelWords = map[string]time.Duration{ //nolint:gochecknoglobals // a table that is only read
	"none": NoWait, "forever": WaitForever, "watchdog": Watchdog,
}

// duration reads a time such as 1m30s, or a word. Words of another field and times
// out of range are left to the check of the rule.
func (f *fileReader) duration(v value, w timeForm) (time.Duration, bool) {
	if !f.is(v, yaml.ScalarNode, "a time such as "+w.example) {
		return 0, false
	}
	text := v.node.Value
	if d, ok := sentinelWords[text]; ok {
		return d, true
	}
	d, err := time.ParseDuration(text)
	if err == nil && d != 0 && strings.TrimLeft(text[:1], "-0123456789") == "" {
		return d, true
	}
	f.reportf(v.node, v.field, "%s", w.problem(clipped(text)))
	return 0, false
}

// problem says what to write instead of text.
func (w timeForm) problem(text string) string {
	instead := w.instead(text)
	switch {
	case wholeNumber.MatchString(text) && strings.Trim(text, "0.") != "":
		return fmt.Sprintf("%s has no unit: write %s", text, instead)
	case goTime.MatchString(text) && !isZeroTime(text):
		return fmt.Sprintf("%s is too long: write %s at most", text, shortTime(MaxDuration))
	case isZeroTime(text):
		return fmt.Sprintf("%s says nothing here: write %s", text, instead)
	default:
		return fmt.Sprintf("%.100q is no time: write %s", text, instead)
	}
}

var (
	goTime      = regexp.MustCompile(`^(\d+(\.\d+)?(ns|us|µs|μs|ms|s|m|h))+$`)
	wholeNumber = regexp.MustCompile(`^\d+(\.\d+)?$`)
)

func isZeroTime(text string) bool {
	d, err := time.ParseDuration(text)
	return err == nil && d == 0
}

// instead is what was probably meant.
func (w timeForm) instead(text string) string {
	folded := strings.ToLower(strings.TrimSpace(text))
	if isZeroTime(folded) {
		folded = "0"
	}
	if word, ok := w.meant[folded]; ok {
		return word
	}
	if times := bareTimes(folded); len(times) > 0 {
		return strings.Join(times, " or ")
	}
	if d := meantTime(folded); d > 0 {
		return shortTime(d)
	}
	if word := failpolicy.Nearest(text, w.words); word != "" {
		return word
	}
	return "a time such as " + w.example
}
