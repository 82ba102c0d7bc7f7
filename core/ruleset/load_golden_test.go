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

// TestLoad_InvalidSamples: every trap is an error that says where it is and what to
// write.
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

// loadSample loads a sample, over rules of lower layers if its name says so.
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

// overProto lays a file over the options of three methods. The last has two.
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

// goWords are what no message about a file says, unless the file does.
var goWords = regexp.MustCompile(`\b(?:HTTP|GRPC|Func)\("|\b(?:ruleset|failpolicy|time)\.[A-Z]\w*|\b(?:Wait|Lease)Time\b|\bOn[A-Z]\w+`)

// checkWords: the problems are in the file, and use its words. Only the name of a
// program and its rules are given in Go.
func checkWords(t *testing.T, text string, problems []*ruleset.Problem) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for _, p := range problems {
		word := goWords.FindString(p.Error())
		if word != "" && word != "ruleset.WithService" && word != "ruleset.WithRules" && !strings.Contains(text, word) {
			t.Errorf("%s is Go's word: %s", word, p)
		}
		line, column := p.Source.Line, p.Source.Column
		if line < 1 || line > len(lines) || column < 1 || column > len([]rune(lines[line-1]))+1 {
			t.Errorf("there is no such place: %s", p)
		}
	}
}

// TestLoad_ValidSamples: what they say is shown by their dumps, in another test.
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

// sampleFiles lists the rule files of a folder of testdata, at least so many.
func sampleFiles(t *testing.T, folder string, atLeast int) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(paths) < atLeast {
		t.Fatalf("got %d samples (%v), want %d", len(paths), err, atLeast)
	}
	return paths
}
