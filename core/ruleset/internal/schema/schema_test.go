package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

func TestGenerate_WritesWhatIsThere(t *testing.T) {
	t.Chdir("../..")
	for range 3 { // in the same order every time
		text, err := generate()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, ruleset.Schema()) {
			t.Fatalf("%s is not up to date: run go generate in core/ruleset", output)
		}
	}
}

func TestFileWords(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]string{
		"WaitTime is how long to wait: 1 ms, [NoWait] or [WaitForever].": "How long to wait: 1 ms, none or forever.",
		"Debounce refuses further calls.":                                "Refuses further calls.",
		"OnLost says what a loss does. Default: [failpolicy.Cancel].":    "What a loss does. Default: cancel.",
		"None says that there is none.":                                  "Says that there is none.",
		"Keys is several. One of Key and Keys must be set.":              "Several. One of key and keys must be set.",
	} {
		if got, err := fileWords(comment); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", comment, got, err, want)
		}
	}
}

func TestDescribe_RefusesWhatWouldReadBadly(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string]string{
		"New is a link to [Something].": "[Something]",
		"":                              "Rule.new has no comment",
	} {
		if text, err := describe("Rule.new", comment); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v", comment, text, err)
		}
	}
}
