package shops_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/redistest"
)

// programs has parts of a line that each program must print.
var programs = map[string][]string{
	"duplicate":   {"ok", "a copy after the window: 201, 2 orders"},
	"stock":       {"ok", "100 sold"},
	"cart":        {"ok", "0 carts stuck"},
	"batch":       {"ok", "12 of 12 batches were done exactly once"},
	"likes":       {"ok", "user:like:a%3Ab:c and user:like:a:b%3Ac"},
	"cron":        {"ok", "tick 7: 1 run, by another instance"},
	"transaction": {"ok", "the balance is 50"},
	"prices":      {"ok", "400 readers saw a correct price"},
	"queue":       {"ok", "0 of 30 out of turn"},
	"reports":     {"ok", "a sixth report: 429"},
	"nested":      {"ok", "count 2, re-entered"},
}

func TestPrograms_AllInTable(t *testing.T) {
	t.Parallel()
	mains, err := filepath.Glob("*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range mains {
		found = append(found, filepath.Dir(path))
	}
	if table := slices.Sorted(maps.Keys(programs)); !slices.Equal(found, table) {
		t.Errorf("the folders with a program are %q, the table has %q", found, table)
	}
}

// The programs run one after the other, because each has many callers.
func TestPrograms_Pass(t *testing.T) {
	bin := build(t)
	server, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for name, line := range programs {
		for place, args := range map[string][]string{"embedded": nil, "elsewhere": {"-redis", server.URL()}} {
			t.Run(name+"/"+place, func(t *testing.T) {
				out, exit := execute(t, filepath.Join(bin, name), args...)
				switch {
				case exit != 0:
					t.Errorf("exit code %d\n%s", exit, out)
				case !strings.Contains(out, "PASS "+name):
					t.Errorf("no verdict:\n%s", out)
				case !hasLine(out, line):
					t.Errorf("no line with %q:\n%s", line, out)
				}
			})
		}
	}
	t.Run("no Redis", func(t *testing.T) {
		out, exit := execute(t, filepath.Join(bin, "nested"), "-redis", "redis://127.0.0.1:1")
		if exit != 1 || strings.Contains(out, "PASS") {
			t.Errorf("exit code %d, want 1 and no verdict\n%s", exit, out)
		}
	})
}

func execute(t *testing.T, program string, args ...string) (out string, exit int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	printed, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err) // not even started
	}
	return string(printed), cmd.ProcessState.ExitCode()
}

// build builds all programs into the folder.
func build(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", folder+string(os.PathSeparator), "./...")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return folder
}

func hasLine(out string, parts []string) bool {
	for line := range strings.Lines(out) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return true
		}
	}
	return false
}
