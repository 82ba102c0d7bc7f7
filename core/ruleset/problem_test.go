package ruleset_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

func TestProblem_Error(t *testing.T) {
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

func TestResolved_Problem(t *testing.T) {
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

// withPicture is a message with a picture of the template. Logs omit the picture.
const withPicture = "keyexpr: 1:5: path: no parameter idd: known are id\n  | o:#{path.idd}\n  |     ^\n  write path.id"

func problemWith(message string) *ruleset.Problem {
	return &ruleset.Problem{
		Rule: "pay", Endpoint: ruleset.HTTP("POST /orders/:id"), Field: "key", Message: message,
		Source: ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 3, Column: 5},
	}
}

func TestLogAttrs(t *testing.T) {
	t.Parallel()
	one, other := problemWith(withPicture), problemWith("10ns is out of range: write 1ms to 87600h, none or forever")
	nowhere := &ruleset.Problem{Endpoint: ruleset.Func("pay"), Message: "no function is wrapped"}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"problem with a picture": {one, `file=locks.yaml line=3 column=5 rule=pay endpoint="http POST /orders/:id" field=key problem="keyexpr: 1:5: path: no parameter idd: known are id" hint="write path.id"`},
		"problem with a hint":    {other, `file=locks.yaml line=3 column=5 rule=pay endpoint="http POST /orders/:id" field=key problem="10ns is out of range" hint="write 1ms to 87600h, none or forever"`},
		"problem in no file":     {nowhere, `endpoint="func pay" problem="no function is wrapped"`},
		"several of one value":   {problemWith(withPicture + "\n" + withPicture), `file=locks.yaml line=3 column=5 rule=pay endpoint="http POST /orders/:id" field=key problem="keyexpr: 1:5: path: no parameter idd: known are id: write path.id; keyexpr: 1:5: path: no parameter idd: known are id: write path.id"`},
		"list":                   {fmt.Errorf("aspect: %w", ruleset.Invalid(one, nowhere)), `problems="[locks.yaml:3:5: rule \"pay\" of http POST /orders/:id: key: keyexpr: 1:5: path: no parameter idd: known are id: write path.id rule of func pay: no function is wrapped]"`},
		"another error":          {errors.Join(errors.New("one"), errors.New("two")), `error="one; two"`},
		"panic":                  {errors.New("ruleset: panic while x: y\ngoroutine 7 [running]:\nmain.main()\n\t/main.go:3"), `error="ruleset: panic while x: y" stack="[goroutine 7 [running]: main.main() \t/main.go:3]"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := strings.ReplaceAll(test.want, "\t", `\t`)
			if got := written(ruleset.LogAttrs(test.err)...); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// A problem is logged as a group of attributes, and several problems as a list.
func TestProblem_LogValue(t *testing.T) {
	t.Parallel()
	problem := &ruleset.Problem{Endpoint: ruleset.Func("pay"), Message: "no function is wrapped"}
	const group = `why.endpoint="func pay" why.problem="no function is wrapped"`
	if got := written(slog.Any("why", problem)); got != group {
		t.Errorf("got %s, want %s", got, group)
	}
	const list = `why="[rule of func pay: no function is wrapped]"`
	if got := written(slog.Any("why", ruleset.Invalid(problem))); got != list {
		t.Errorf("got %s, want %s", got, list)
	}
}

// written returns attributes in the format of slog.
func written(attrs ...slog.Attr) string {
	var text bytes.Buffer
	record := slog.Record{}
	record.AddAttrs(attrs...)
	handler := slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}})
	_ = handler.Handle(nil, record) //nolint:staticcheck // it has no use for a context
	return strings.TrimSpace(text.String())
}
