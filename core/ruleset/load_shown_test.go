package ruleset_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// shownLine is how a message shows a corrected line, and shownValue a value.
var (
	shownLine  = regexp.MustCompile(`(?:quote the whole value|needs quotes|needs quotes in \[…\] and \{…\}|not read here|in quotes|a dash is missing|after the colon|straight quotes): (.+)$`)
	shownValue = regexp.MustCompile(`(?:is not a time|has no unit): write (\S+)(?: or \S+)?$`)
)

// TestLoad_WhatIsShownIsRight writes into the samples what the messages say, until
// they load or say nothing more of the kind.
func TestLoad_WhatIsShownIsRight(t *testing.T) {
	t.Parallel()
	corrected := 0
	for _, path := range sampleFiles(t, "invalid", 80) {
		name := filepath.Base(path)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		for range 10 {
			next, what := correct(text)
			if what == "" {
				break
			}
			if next == text {
				t.Errorf("%s: what is shown changes nothing: %s", name, what)
				break
			}
			corrected++
			text = next
			if _, again := correct(text); again == what {
				t.Errorf("%s: the same again after writing what is shown: %s\n%s", name, what, text)
				break
			}
		}
	}
	if corrected < 50 {
		t.Errorf("only %d corrections were tried", corrected)
	}
}

// correct writes the first correction that is shown for the text into it. what is the
// problem, "" if none shows one.
func correct(text string) (next, what string) {
	_, err := ruleset.Load("locks.yaml", []byte(text), sampleOptions()...)
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	if !ok {
		return text, ""
	}
	for _, p := range invalid.Problems {
		lines := strings.Split(text, "\n")
		if p.Source.Line < 1 || p.Source.Line > len(lines) {
			continue
		}
		line := &lines[p.Source.Line-1]
		if shown := shownLine.FindStringSubmatch(p.Message); shown != nil {
			*line = (*line)[:len(*line)-len(strings.TrimLeft(*line, " "))] + shown[1]
		} else if shown := shownValue.FindStringSubmatch(p.Message); shown != nil {
			start := p.Source.Column - 1
			*line = (*line)[:start] + shown[1]
		} else {
			continue
		}
		return strings.Join(lines, "\n"), p.Error()
	}
	return text, ""
}
