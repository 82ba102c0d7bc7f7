package aspect_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

func TestNew_SetBesideDefaults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := aspect.New(b.locks, aspect.WithSet(file(t)), aspect.WithProfile("default", ruleset.Rule{WaitTime: time.Second}))
	if err == nil || !strings.Contains(err.Error(), "together with WithSet") {
		t.Errorf("got %v", err)
	}
}

func TestNew_NilSet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, p := range []ruleset.Provider{nil, (*ruleset.Set)(nil), (*ruleset.Live)(nil)} {
		_, err := aspect.New(b.locks, aspect.WithSet(p))
		if err == nil || !strings.Contains(err.Error(), "WithSet: the rules are nil") || !strings.Contains(err.Error(), "ruleset.Open") {
			t.Errorf("%T: got %v", p, err)
		}
	}
}

func TestNew_ReportsEveryBadOption(t *testing.T) {
	t.Parallel()
	none := func(context.Context, string) (string, error) { return "", nil }
	twice := aspect.WithFallback("queue", none)
	_, err := aspect.New(nil,
		nil,
		aspect.WithFallback("", none),
		twice,
		twice,
		aspect.WithFallback[string, string]("nothing", nil),
		aspect.WithProfile("default", ruleset.Rule{Key: "a"}),
		aspect.WithProfile("hasty", ruleset.Rule{WaitTime: 5}),
	)
	if err == nil {
		t.Fatal("accepted")
	}
	golden.Assert(t, err.Error()+"\n", "options.txt")
}
