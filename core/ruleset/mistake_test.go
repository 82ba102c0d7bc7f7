package ruleset_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

// valid is a rule without problems, to be broken in one place.
func valid() ruleset.Rule {
	return ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Name: "pay", Key: "order:#{path.id}"}
}

// More mistakes, with their messages, are in TestNewSet_ReportsEveryProblemAtOnce.
func TestNewSet_OneMistakeIsOneProblemAtItsField(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		field string
		spoil func(r *ruleset.Rule)
	}{
		"blank name":             {"name", func(r *ruleset.Rule) { r.Name = " " }},
		"long name":              {"name", func(r *ruleset.Rule) { r.Name = strings.Repeat("x", 101) }},
		"newline in name":        {"name", func(r *ruleset.Rule) { r.Name = "pay\norder" }},
		"name, no text":          {"name", func(r *ruleset.Rule) { r.Name = "pay\xff" }},
		"message, no text":       {"message", func(r *ruleset.Rule) { r.Message = "busy\xff" }},
		"blank key":              {"key", func(r *ruleset.Rule) { r.Key = "\t" }},
		"too many keys":          {"keys", func(r *ruleset.Rule) { r.Key, r.Keys = "", numbered(101) }},
		"blank condition":        {"when", func(r *ruleset.Rule) { r.When = " " }},
		"permits of a spin lock": {"permits", func(r *ruleset.Rule) { r.Kind, r.Permits = ruleset.Spin, 1 }},
		"huge permits":           {"permits", func(r *ruleset.Rule) { r.Kind, r.Permits = ruleset.Semaphore, math.MaxInt32+1 }},
		"token of a reader":      {"token", func(r *ruleset.Rule) { r.Kind, r.Token = ruleset.Read, true }},
		"debounced semaphore":    {"debounce", func(r *ruleset.Rule) { r.Kind, r.Permits, r.Debounce = ruleset.Semaphore, 1, time.Second }},
		"token of several keys":  {"token", func(r *ruleset.Rule) { r.Key, r.Keys, r.Token = "", []string{"a", "b"}, true }},
		"newline in prefix":      {"prefix", func(r *ruleset.Rule) { r.Prefix = "a\n" }},
	} {
		rule := valid()
		tc.spoil(&rule)
		_, err := ruleset.NewSet([]ruleset.Rule{rule})
		invalid, ok := errors.AsType[*ruleset.InvalidError](err)
		if !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Field != tc.field {
			t.Errorf("%s: got %v, want one problem at %s", name, err, tc.field)
			continue
		}
		p := invalid.Problems[0]
		if !errors.Is(err, p) || p.Source.Layer != ruleset.LayerCode {
			t.Errorf("%s: got %+v", name, p)
		}
	}
}

func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = strings.Repeat("k", i+1)
	}
	return keys
}

func TestProblem_Texts(t *testing.T) {
	t.Parallel()
	pay, yaml := ruleset.HTTP("POST /pay"), ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 3, Column: 7}
	for want, p := range map[string]ruleset.Problem{
		`rule of http POST /pay: WaitTime: bad`:                     {Rule: "POST /pay", Endpoint: pay, Field: "wait_time", Message: "bad"},
		`rule "pay" of http POST /pay: Keys[1]: bad`:                {Rule: "pay", Endpoint: pay, Field: "keys[1]", Message: "bad"},
		`rule "pay": bad`:                                           {Rule: "pay", Message: "bad"},
		`rule without endpoint and name: Key: bad`:                  {Field: "key", Message: "bad"},
		`locks.yaml:3:7: rule "pay" of http POST /pay: on_key: bad`: {Rule: "pay", Endpoint: pay, Field: "on_key", Source: yaml, Message: "bad"},
		`profile quick: WaitTime: bad`:                              {Field: "wait_time", Source: ruleset.Source{Layer: ruleset.LayerProfile, Profile: "quick"}, Message: "bad"},
		`defaults: WaitTime: bad`:                                   {Field: "wait_time", Source: ruleset.Source{Layer: ruleset.LayerDefault}, Message: "bad"},
		`rule "pay": unheard_of: bad`:                               {Rule: "pay", Field: "unheard_of", Message: "bad"},
	} {
		if got := p.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if place, text := p.Position(), p.Text(); strings.TrimPrefix(place+": "+text, ": ") != want {
			t.Errorf("got  %q and %q\nwant %s", place, text, want)
		}
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	if err := ruleset.Invalid(); err != nil {
		t.Errorf("no problems: got %v", err)
	}
	one := &ruleset.Problem{Rule: "pay", Message: "first line\n  second line"}
	if got, want := ruleset.Invalid(one).Error(), "ruleset: rule \"pay\": first line\n\t  second line"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSource_Texts(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]ruleset.Source{
		"not set":         {},
		"default":         {Layer: ruleset.LayerDefault},
		"profile quick":   {Layer: ruleset.LayerProfile, Profile: "quick"},
		"code":            {Layer: ruleset.LayerCode},
		"proto":           {Layer: ruleset.LayerProto},
		"yaml":            {Layer: ruleset.LayerYAML},
		"locks.yaml":      {Layer: ruleset.LayerYAML, File: "locks.yaml"},
		"locks.yaml:3":    {Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 3},
		"order.proto:3:7": {Layer: ruleset.LayerProto, File: "order.proto", Line: 3, Column: 7},
	} {
		if got := s.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestResolved_ProblemPointsAtTheDeclaringLine(t *testing.T) {
	t.Parallel()
	at := func(line int) ruleset.Source {
		return ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: line}
	}
	set, err := ruleset.BuildSet([]ruleset.Declared{{
		Rule:   ruleset.Rule{Endpoint: ruleset.Func("f"), Keys: []string{"a", "b"}},
		Source: at(1), Fields: map[string]ruleset.Source{"keys": at(2)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := set.Rules()[0]
	for field, line := range map[string]int{"keys[1]": 2, "endpoint": 1, "when": 1} {
		if got := r.Problem(field, "bad").Source; got != at(line) {
			t.Errorf("%s: got %s, want %s", field, got, at(line))
		}
	}
}

func TestRule_Templates(t *testing.T) {
	t.Parallel()
	one, many := ruleset.Rule{Key: "a"}, ruleset.Rule{Keys: []string{"a", "b"}}
	if got := one.Templates(); len(got) != 1 || got[0] != "a" {
		t.Errorf("got %q", got)
	}
	if got := many.Templates(); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

func TestMaxDuration_SentinelsAreOutsideOfIt(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for _, d := range []time.Duration{ruleset.NoWait, ruleset.WaitForever, ruleset.Watchdog} {
		if d >= -ruleset.MaxDuration || seen[d] {
			t.Errorf("%d could be mistaken for a duration or another sentinel", d)
		}
		seen[d] = true
	}
}
