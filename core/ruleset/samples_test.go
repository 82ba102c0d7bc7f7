package ruleset_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
	"github.com/interlock-go/interlock/failpolicy"
)

// samples returns the rule files of a folder of testdata, by name.
func samples(t *testing.T, folder string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("testdata/%s has %d samples (%v)", folder, len(paths), err)
	}
	texts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(path), ".yaml")] = string(text)
	}
	return texts
}

// sampleOptions returns the options that the samples need.
func sampleOptions() []ruleset.Option {
	return []ruleset.Option{ruleset.WithService("shop-api")}
}

// Every invalid sample is refused with the place of each mistake, and with what to write.
func TestLoad_InvalidSamples(t *testing.T) {
	t.Parallel()
	for _, path := range sampleFiles(t, "invalid", 80) {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			err = loadSample(name, text)
			invalid, ok := errors.AsType[*ruleset.InvalidError](err)
			if !ok {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			checkWords(t, string(text), invalid.Problems)
			golden.Assert(t, rulesettest.WithoutLists(err.Error())+"\n", filepath.Join("invalid", name)+".txt")
		})
	}
}

// loadSample loads a sample. The name of a sample may require rules of lower layers under it.
func loadSample(name string, text []byte) error {
	options := sampleOptions()
	switch {
	case strings.HasSuffix(name, "-without-program-name"):
		options = nil
	case strings.HasSuffix(name, "-over-program"):
		options = append(options, ruleset.WithRules(
			ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}", WaitTime: time.Second},
			ruleset.Rule{Endpoint: ruleset.Func("close-day"), Name: "close", Key: "day", OnBusy: failpolicy.Skip},
		))
	case strings.HasSuffix(name, "-over-proto"):
		return overProto(text, options)
	}
	_, err := ruleset.Load("locks.yaml", text, options...)
	return err
}

// overProto lays a file over the options of three methods. The last method has two rules.
func overProto(text []byte, options []ruleset.Option) error {
	set, err := ruleset.Load("locks.yaml", text, options...)
	if err != nil {
		return err
	}
	var problems []*ruleset.Problem
	for i, rules := range [][]ruleset.Rule{
		{{Endpoint: ruleset.GRPC("/shop.Orders/Pay"), Key: "order:#{req.order_id}", WaitTime: time.Second}},
		{{Endpoint: ruleset.GRPC("/shop.Orders/Ship"), Name: "ship", Key: "order:#{req.order_id}"}},
		{{Endpoint: ruleset.GRPC("/shop.Orders/Move"), Name: "from", Key: "a"}, {Endpoint: ruleset.GRPC("/shop.Orders/Move"), Name: "to", Key: "b"}},
	} {
		var declared []ruleset.Declared
		for k, r := range rules {
			source := ruleset.Source{Layer: ruleset.LayerProto, File: "shop.proto", Line: 10*(i+1) + k, Column: 5}
			declared = append(declared, ruleset.Declared{Rule: r, Source: source})
		}
		_, err := set.Overlay(rules[0].Endpoint, declared...)
		if invalid, ok := errors.AsType[*ruleset.InvalidError](err); ok {
			problems = append(problems, invalid.Problems...)
		}
	}
	return ruleset.Invalid(problems...)
}

// goWords matches names of Go. A message about a file contains none of them, unless the file itself does.
var goWords = regexp.MustCompile(`\b(?:HTTP|GRPC|Func)\("|\b(?:ruleset|failpolicy|time)\.[A-Z]\w*|\b(?:Wait|Lease)Time\b|\bOn[A-Z]\w+`)

// checkWords checks that problems have places in the file and use the names of files. Only for rules of the
// program they may use names of Go.
func checkWords(t *testing.T, text string, problems []*ruleset.Problem) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for _, p := range problems {
		word := goWords.FindString(p.Error())
		if word != "" && word != "ruleset.WithService" && word != "ruleset.WithRules" && !strings.Contains(text, word) {
			t.Errorf("%s is a name of Go: %s", word, p)
		}
		line, column := p.Source.Line, p.Source.Column
		if line < 1 || line > len(lines) || column < 1 || column > len([]rune(lines[line-1]))+1 {
			t.Errorf("the file does not have this place: %s", p)
		}
	}
}

// Every valid sample can be opened. TestDump_Samples compares its rules.
func TestLoad_ValidSamples(t *testing.T) {
	t.Parallel()
	for _, path := range sampleFiles(t, "valid", 20) {
		live, err := ruleset.Open(path, sampleOptions()...)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		rules := live.Current().Rules()
		if none := strings.Contains(path, "no-rules"); (len(rules) == 0) != none {
			t.Errorf("%s: got %d rules", path, len(rules))
		}
	}
}

// sampleFiles lists the rule files of a folder of testdata. There must be at least atLeast.
func sampleFiles(t *testing.T, folder string, atLeast int) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(paths) < atLeast {
		t.Fatalf("got %d samples (%v), want %d", len(paths), err, atLeast)
	}
	return paths
}

// shownLine matches a corrected line in a message, and shownValue a corrected value.
var (
	shownLine  = regexp.MustCompile(`(?:quote the whole value|needs quotes|needs quotes in \[…\] and \{…\}|not read here|in quotes|a dash is missing|after the colon|straight quotes): (.+)$`)
	shownValue = regexp.MustCompile(`(?:is not a time|has no unit): write (\S+)(?: or \S+)?$`)
)

// The test applies each correction in the messages to the sample, until the sample loads or its messages
// contain no more corrections.
func TestLoad_ShownCorrections(t *testing.T) {
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
				t.Errorf("%s: the correction changes nothing: %s", name, what)
				break
			}
			corrected++
			text = next
			if _, again := correct(text); again == what {
				t.Errorf("%s: the same problem after the correction: %s\n%s", name, what, text)
				break
			}
		}
	}
	if corrected < 50 {
		t.Errorf("only %d corrections were tried", corrected)
	}
}

// correct applies the first correction in the messages to the text. It returns the corrected problem, or ""
// if the messages contain no correction.
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
