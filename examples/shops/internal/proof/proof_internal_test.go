package proof

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_Verdict(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prove func(context.Context, *Proof) error
		want  string // the text of the error; empty for none
		print string
	}{
		"all hold": {func(_ context.Context, p *Proof) error {
			p.Checkf(true, "%d sold", 100)
			return nil
		}, "", "ok    100 sold"},
		"one is wrong": {func(_ context.Context, p *Proof) error {
			p.Checkf(true, "100 sold")
			p.Checkf(false, "%d left", 3)
			return nil
		}, "1 of 2 checks are wrong", "WRONG 3 left"},
		"an error":         {func(context.Context, *Proof) error { return errors.New("it rains") }, "it rains", ""},
		"nothing to prove": {func(context.Context, *Proof) error { return nil }, "nothing was checked", ""},
		"a lock": {func(ctx context.Context, p *Proof) error {
			locks, err := p.Locks(ctx)
			if err != nil {
				return err
			}
			return locks.Lock("a").Do(ctx, func(context.Context) error {
				state, err := locks.Lock("a").State(ctx)
				p.Checkf(len(state.Holders) == 1 && strings.HasPrefix(state.Key, p.Prefix()), "%s", state.Key)
				return err
			})
		}, "", "ok "},
	}
	for name, test := range tests {
		for place, args := range map[string][]string{"embedded": nil, "elsewhere": {"-redis", elsewhere(t)}} {
			t.Run(name+"/"+place, func(t *testing.T) {
				t.Parallel()
				var out bytes.Buffer
				err := run(t.Context(), "demo", args, &out, test.prove)
				if got := text(err); got != test.want {
					t.Errorf("got error %q, want %q", got, test.want)
				}
				if passed := strings.Contains(out.String(), "PASS demo"); passed != (test.want == "") {
					t.Errorf("passed: %t, with the error %v", passed, err)
				}
				if !strings.Contains(out.String(), test.print) {
					t.Errorf("%q is not in the output:\n%s", test.print, &out)
				}
			})
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
			err := run(t.Context(), "demo", test.args, &bytes.Buffer{}, func(ctx context.Context, p *Proof) error {
				p.Checkf(true, "here")
				_, err := p.Locks(ctx)
				return err
			})
			if !strings.Contains(text(err), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	got := Tally(10, func(i int) bool { return i%5 == 0 })
	if got[true] != 2 || got[false] != 8 {
		t.Errorf("got %v, want 2 true and 8 false", got)
	}
}

func elsewhere(t *testing.T) (url string) {
	t.Helper()
	server, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server.URL()
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
