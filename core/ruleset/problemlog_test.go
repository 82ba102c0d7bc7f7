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

// What a template does not know is said with a picture, which is nothing for a log.
const pictured = "keyexpr: 1:5: path: no parameter idd: known are id\n  | o:#{path.idd}\n  |     ^\n  write path.id"

func mistaken(message string) *ruleset.Problem {
	return &ruleset.Problem{
		Rule: "pay", Endpoint: ruleset.HTTP("POST /orders/:id"), Field: "key", Message: message,
		Source: ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 3, Column: 5},
	}
}

func TestLogAttrs_OneLineEach(t *testing.T) {
	t.Parallel()
	one, other := mistaken(pictured), mistaken("10ns is out of range: write 1ms to 87600h, none or forever")
	nowhere := &ruleset.Problem{Endpoint: ruleset.Func("pay"), Message: "no function is wrapped"}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"problem with a picture": {one, `file=locks.yaml line=3 column=5 rule=pay endpoint="http POST /orders/:id" field=key problem="keyexpr: 1:5: path: no parameter idd: known are id" hint="write path.id"`},
		"problem with a hint":    {other, `file=locks.yaml line=3 column=5 rule=pay endpoint="http POST /orders/:id" field=key problem="10ns is out of range" hint="write 1ms to 87600h, none or forever"`},
		"problem in no file":     {nowhere, `endpoint="func pay" problem="no function is wrapped"`},
		"several of one value":   {mistaken(pictured + "\n" + pictured), `file=locks.yaml line=3 column=5 rule=pay endpoint="http POST /orders/:id" field=key problem="keyexpr: 1:5: path: no parameter idd: known are id: write path.id; keyexpr: 1:5: path: no parameter idd: known are id: write path.id"`},
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

// Whoever logs a problem by itself has its attributes as a group, and a list of several.
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

// written are attributes as slog writes them.
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
