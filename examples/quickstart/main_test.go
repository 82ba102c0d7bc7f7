package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/redistest"
)

func TestMain(m *testing.M) {
	if lock, ok := holderFromEnv(); ok { // the step "killed" started this binary
		os.Exit(holdUntilKilled(lock))
	}
	goleak.VerifyTestMain(m)
}

func TestQuickstart_EmbeddedRedis(t *testing.T) {
	t.Parallel()
	everyStepPasses(t)
}

func TestQuickstart_RedisElsewhere(t *testing.T) {
	t.Parallel()
	redis, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Close)
	everyStepPasses(t, "-redis", redis.URL())
}

func everyStepPasses(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, s := range steps() {
		if !strings.Contains(out.String(), "    "+s.name+" ") {
			t.Errorf("step %s is not in the table", s.name)
		}
	}
}

func TestPerform_FailedStep(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &demo{out: &printer{w: &out}}
	ran := 0
	count := func(context.Context, *demo) (string, error) { ran++; return "fine", nil }
	fail := func(context.Context, *demo) (string, error) { ran++; return "wet", errors.New("it rains") }
	_, err := d.perform(t.Context(), []step{
		{name: "walk", expected: "dry", run: fail},
		{name: "tea", expected: "hot", run: count},
	})
	if err == nil || err.Error() != "step walk: it rains" {
		t.Errorf("got %v, want the failed step", err)
	}
	if ran != 2 {
		t.Errorf("%d steps ran, want 2: a failed step does not stop the others", ran)
	}
	for _, row := range []string{"walk  dry       wet   NO", "tea   hot       fine  yes"} {
		if !strings.Contains(out.String(), row) {
			t.Errorf("the table has no row %q:\n%s", row, &out)
		}
	}
}

func TestRun_Refuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown step": {[]string{"-steps", "sold,nap"}, `unknown step "nap"`},
		"not a URL":    {[]string{"-redis", "localhost:6379"}, "write redis://"},
		"no server":    {[]string{"-redis", "redis://127.0.0.1:1"}, "redis unavailable"},
		"unknown flag": {[]string{"-fast"}, "-fast"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), test.args, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
