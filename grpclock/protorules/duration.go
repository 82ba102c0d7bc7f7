package protorules

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// parseDuration reads a duration as a rule file has it: a time such as 1m30s, or a
// word. Words of another field and times out of range are left to the check of the
// rule.
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
	bare := bareTimes(text)
	switch {
	case err == nil && d == 0 && field == "wait_time":
		return 0, fmt.Errorf("%q says nothing here: write \"none\"", text)
	case err == nil && d == 0:
		return 0, fmt.Errorf("%q says nothing here: write %s", text, example(field))
	case err == nil && strings.TrimLeft(text[:1], "-0123456789") == "": // no "+5s", no ".5s"
		return d, nil
	case len(bare) > 0:
		return 0, fmt.Errorf("%q has no unit: write %s", text, strings.Join(quoted(bare), " or "))
	case goTime.MatchString(text):
		return 0, fmt.Errorf("%q is too long: write \"%.0fh\" at most", text, ruleset.MaxDuration.Hours())
	default:
		return 0, fmt.Errorf("%.100q is no time: write %s", text, instead(field, text))
	}
}

var (
	bareNumber = regexp.MustCompile(`^([1-9]\d*|\d+\.\d+)$`)
	goTime     = regexp.MustCompile(`^(\d+(\.\d+)?(ns|us|µs|μs|ms|s|m|h))+$`)
)

// bareTimes are the times that a number without a unit probably stands for, as rule
// files take it: milliseconds or seconds, if that is a likely time.
func bareTimes(text string) []string {
	if !bareNumber.MatchString(text) {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	var times []string
	if n >= 100 && n <= float64(ruleset.MaxDuration.Milliseconds()) {
		times = append(times, text+"ms")
	}
	if n >= 0.001 && n <= (24*time.Hour).Seconds() {
		times = append(times, text+"s")
	}
	return times
}

// instead is what was probably meant.
func instead(field, text string) string {
	if near := failpolicy.Nearest(text, wordsOf(field)); near != "" {
		return strconv.Quote(near)
	}
	return example(field)
}

func wordsOf(field string) []string {
	switch field {
	case "wait_time":
		return []string{"none", "forever"}
	case "lease_time":
		return []string{"watchdog"}
	default:
		return nil
	}
}

// example is a right value and the words of the field.
func example(field string) string {
	return strings.Join(append([]string{`a time such as "10s"`}, quoted(wordsOf(field))...), " or ")
}

func quoted(words []string) []string {
	var list []string
	for _, w := range words {
		list = append(list, strconv.Quote(w))
	}
	return list
}
