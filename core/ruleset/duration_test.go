package ruleset_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

const (
	inYAML  = ruleset.LayerYAML
	inProto = ruleset.LayerProto
)

// parseDuration sets a field to a time in the notation of a layer.
func parseDuration(layer ruleset.Layer, field, text string) (time.Duration, error) {
	d := ruleset.Declared{Source: ruleset.Source{Layer: layer}}
	err := d.Set(field, text)
	return map[string]time.Duration{"wait_time": d.Rule.WaitTime, "lease_time": d.Rule.LeaseTime, "max_hold": d.Rule.MaxHold, "debounce": d.Rule.Debounce}[field], err
}

func TestDeclared_Set_Times(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"10s":      10 * time.Second,
		"1m30s":    90 * time.Second,
		"1.5h":     90 * time.Minute,
		"250ms":    250 * time.Millisecond,
		"1us":      time.Microsecond,
		"1µs":      time.Microsecond,
		"-5s":      -5 * time.Second, // the check of the rule refuses this value later
		"00010s":   10 * time.Second,
		"0h10s0ms": 10 * time.Second,
		"87600h":   ruleset.MaxDuration,
		"none":     ruleset.NoWait,
		"forever":  ruleset.WaitForever,
		"watchdog": ruleset.Watchdog,
	} {
		for _, field := range []string{"wait_time", "lease_time", "max_hold", "debounce"} {
			for _, layer := range []ruleset.Layer{inYAML, inProto} {
				if got, err := parseDuration(layer, field, text); err != nil || got != want {
					t.Errorf("%s: %s: got %v, %v, want %v", field, text, got, err, want)
				}
			}
		}
	}
}

// A message contains the intended time if that is clear, and otherwise an example.
func TestDeclared_Set_WrongTimes(t *testing.T) {
	t.Parallel()
	for field, texts := range map[string]map[string]string{
		"wait_time": {
			"":                 `"" is not a time: write a time such as 5s, none or forever`,
			" ":                `" " is not a time: write a time such as 5s, none or forever`,
			"soon":             `"soon" is not a time: write a time such as 5s, none or forever`,
			"0":                `0 has no meaning here: write none`,
			"0s":               `0s has no meaning here: write none`,
			"+0.0m":            `+0.0m has no meaning here: write none`,
			"no":               `"no" is not a time: write a time such as 5s, none or forever`,
			"None":             `"None" is not a time: write none`,
			"nowait":           `"nowait" is not a time: write a time such as 5s, none or forever`,
			"immediately":      `"immediately" is not a time: write a time such as 5s, none or forever`,
			"-1":               `"-1" is not a time: write forever`,
			"infinite":         `"infinite" is not a time: write a time such as 5s, none or forever`,
			"UNLIMITED":        `"UNLIMITED" is not a time: write a time such as 5s, none or forever`,
			"forevr":           `"forevr" is not a time: write forever`,
			"3":                `3 has no unit: write 3s`,
			"99":               `99 has no unit: write 99s`,
			"100":              `100 has no unit: write 100ms or 100s`,
			"1.5":              `1.5 has no unit: write 1.5s`,
			"3000":             `3000 has no unit: write 3000ms or 3000s`,
			"86400":            `86400 has no unit: write 86400ms or 86400s`,
			"86401":            `86401 has no unit: write 86401ms`,
			"1000000000000":    `1000000000000 has no unit: write a time such as 5s, none or forever`,
			"010":              `010 has no unit: write a time such as 5s, none or forever`,
			"0.0001":           `0.0001 has no unit: write a time such as 5s, none or forever`,
			"+5s":              `"+5s" is not a time: write a time such as 5s, none or forever`,
			"+5":               `"+5" is not a time: write a time such as 5s, none or forever`,
			".5s":              `".5s" is not a time: write a time such as 5s, none or forever`,
			"5 s":              `"5 s" is not a time: write 5s`,
			" 5s":              `" 5s" is not a time: write a time such as 5s, none or forever`,
			"5S":               `"5S" is not a time: write 5s`,
			"5sec":             `"5sec" is not a time: write 5s`,
			"5 seconds":        `"5 seconds" is not a time: write 5s`,
			"90 minutes":       `"90 minutes" is not a time: write 1h30m`,
			"1 hour, 5 min":    `"1 hour, 5 min" is not a time: write a time such as 5s, none or forever`,
			"1 hour and 30min": `"1 hour and 30min" is not a time: write a time such as 5s, none or forever`,
			"1h30":             `"1h30" is not a time: write a time such as 5s, none or forever`,
			"2d":               `"2d" is not a time: write 48h`,
			"1 week":           `"1 week" is not a time: write a time such as 5s, none or forever`,
			"1d12h":            `"1d12h" is not a time: write a time such as 5s, none or forever`,
			"PT30S":            `"PT30S" is not a time: write a time such as 5s, none or forever`,
			"P1DT2H":           `"P1DT2H" is not a time: write a time such as 5s, none or forever`,
			"pt1h30m":          `"pt1h30m" is not a time: write a time such as 5s, none or forever`,
			"0:30":             `"0:30" is not a time: write a time such as 5s, none or forever`,
			"1:30:00":          `"1:30:00" is not a time: write a time such as 5s, none or forever`,
			"5 parsecs":        `"5 parsecs" is not a time: write a time such as 5s, none or forever`,
			"5s5":              `"5s5" is not a time: write a time such as 5s, none or forever`,
			"1e3s":             `"1e3s" is not a time: write a time such as 5s, none or forever`,
			"200000h":          `"200000h" is not a time: write a time such as 5s, none or forever`,
			"9999999999h":      `9999999999h is too long: write 87600h at most`,
			"9999999999 hours": `"9999999999 hours" is not a time: write a time such as 5s, none or forever`,
			"٣s":               `"٣s" is not a time: write a time such as 5s, none or forever`,
			"5s\n":             `"5s\n" is not a time: write a time such as 5s, none or forever`,
		},
		"lease_time": {
			"0":        `0 has no meaning here: write a time such as 30s or watchdog`,
			"auto":     `"auto" is not a time: write a time such as 30s or watchdog`,
			"-1":       `"-1" is not a time: write watchdog`,
			"watchdgo": `"watchdgo" is not a time: write watchdog`,
			"30000":    `30000 has no unit: write 30000ms or 30000s`,
		},
		"max_hold": {
			"0":         `0 has no meaning here: write a time such as 1m`,
			"unlimited": `"unlimited" is not a time: write a time such as 1m`,
			"60":        `60 has no unit: write 60s`,
		},
		"debounce": {
			"0":     `0 has no meaning here: write a time such as 5s`,
			"-1":    `"-1" is not a time: write a time such as 5s`,
			"never": `"never" is not a time: write a time such as 5s`,
			"10":    `10 has no unit: write 10s`,
		},
	} {
		for text, want := range texts {
			got, err := parseDuration(inYAML, field, text)
			if text == "200000h" { // the check of the rule refuses this value later
				if err != nil {
					t.Errorf("%s: got %v", text, err)
				}
				continue
			}
			if err == nil || got != 0 || err.Error() != want {
				t.Errorf("%s: %q: got %v, %v, want %s", field, text, got, err, want)
			}
		}
	}
}

// An option in a .proto file is a quoted text, so messages about it also quote their examples.
func TestDeclared_Set_WrongTimesInProto(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10":          `"10" has no unit: write "10s"`,
		"3000":        `"3000" has no unit: write "3000ms" or "3000s"`,
		"0":           `"0" has no meaning here: write "none"`,
		"soon":        `"soon" is not a time: write a time such as "5s", "none" or "forever"`,
		"Forever":     `"Forever" is not a time: write "forever"`,
		"5 minutes":   `"5 minutes" is not a time: write "5m"`,
		"9999999999h": `"9999999999h" is too long: write "87600h" at most`,
	} {
		if _, err := parseDuration(inProto, "wait_time", text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestDeclared_Set_EndlessTime(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("a", 5000), strings.Repeat("1", 5000), strings.Repeat("999999h", 1000), strings.Repeat("1 h ", 5000)} {
		if _, err := parseDuration(inYAML, "wait_time", text); err == nil || len(err.Error()) > 1200 {
			t.Errorf("%.20s…: got %.200v", text, err)
		}
	}
}

// advisedTime matches the time or word in the advice of a message, but not an example.
var advisedTime = regexp.MustCompile(`: write ([\w.]+)(?: or ([\w.]+))?(?: at most)?$`)

// FuzzDeclared_Set_Times checks that each time is parsed like Go parses it, and that each advised time is
// valid.
func FuzzDeclared_Set_Times(f *testing.F) {
	for _, text := range []string{"10s", "1h30m", "10", "3000", "1 hour", "PT5M", "1:30", "none", "0", "-1", "5S", "2 weeks and 1 day", "..s", "9e9h", "1.5.5s", "p", "1µs", "١s"} {
		f.Add("wait_time", text)
		f.Add("lease_time", text)
		f.Add("max_hold", text)
		f.Add("debounce", text)
	}
	f.Fuzz(func(t *testing.T, field, text string) {
		if field != "wait_time" && field != "lease_time" && field != "max_hold" && field != "debounce" {
			return
		}
		d, err := parseDuration(inYAML, field, text)
		if err == nil {
			goes, notTime := time.ParseDuration(text)
			isWord := text == "none" || text == "forever" || text == "watchdog"
			if !isWord && (notTime != nil || goes != d || d == 0) {
				t.Errorf("%q is %v here, but %v, %v in Go", text, d, goes, notTime)
			}
			return
		}
		advised := advisedTime.FindStringSubmatch(err.Error())
		for i := 1; i < len(advised) && advised[i] != ""; i++ {
			got, again := parseDuration(inYAML, field, advised[i])
			if again != nil || got > ruleset.MaxDuration {
				t.Errorf("%q: the advice of %v yields %v, %v", text, err, got, again)
			}
		}
	})
}
