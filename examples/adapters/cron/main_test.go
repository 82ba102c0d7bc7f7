package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_OncePerTick(t *testing.T) {
	t.Parallel()
	server, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for place, args := range map[string][]string{"embedded": nil, "elsewhere": {"-redis", server.URL()}} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := run(t.Context(), append(args, "-rules", "locks.yaml", "-instances", "8", "-ticks", "5", "-every", "100ms"), &out)
			if err != nil || !strings.Contains(out.String(), "5 ticks, and the job ran once at each") {
				t.Errorf("%v\n%s", err, &out)
			}
		})
	}
}

func TestRun_RuleWithoutAFunction(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "locks.yaml")
	rule := "rules:\n  - func: close-day\n    key: a\n  - func: close-dya\n    key: b\n"
	if err := os.WriteFile(file, []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-rules", file}, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), `did you mean "close-day"?`) {
		t.Errorf("got %v", err)
	}
}
