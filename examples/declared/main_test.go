package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDeclared_EmbeddedRedis(t *testing.T) {
	t.Parallel()
	everyStepPasses(t)
}

func TestDeclared_RedisElsewhere(t *testing.T) {
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
	err := d.perform(t.Context(), []step{
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

// With -serve the service runs until it is interrupted, and applies an edited file.
func TestServe(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d, err := start(ctx, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	seen := newLines()
	d.out.w = seen
	served := make(chan struct{})
	go func() {
		defer close(served)
		d.serve(ctx)
	}()
	seen.await(t, d.file.path)
	for _, edit := range []struct{ text, want string }{
		{strings.ReplaceAll(locksYAML, "500ms", "300ms"), "wait_time: 500ms"},
		{strings.ReplaceAll(locksYAML, "500ms", "300"), "refused, the old rules stay in force"},
	} {
		if err := byRename(d.file, edit.text); err != nil {
			t.Fatal(err)
		}
		seen.await(t, edit.want)
	}
	cancel()
	<-served
}

// lines returns the printed lines.
type lines chan string

func newLines() lines { return make(lines, 1000) }

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

func (l lines) await(t *testing.T, want string) {
	t.Helper()
	limit := time.After(5 * time.Minute) // for a failing test
	for {
		select {
		case text := <-l:
			if strings.Contains(text, want) {
				return
			}
		case <-limit:
			t.Fatalf("nothing was printed with %q", want)
		}
	}
}
