package model_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Environment variables.
const (
	jarEnv   = "INTERLOCK_TLC"   // the path of tla2tools.jar, or of a jar with the same classes
	depthEnv = "INTERLOCK_MODEL" // "deep" sets the bounds of a nightly run
)

// bounds are the constants of Lock.tla.
type bounds struct {
	may           []string
	mutant        string
	clients       []string // model values a and b, if empty
	turns, others int
	fields        int
	long, short   int
	leases        []int
	margin, drift int
	lost, late    int
}

// normal are the bounds from which checks differ.
var normal = bounds{
	mutant: "none", turns: 1, others: 1, fields: 3, long: 2, short: 1, leases: []int{2},
}

func (b bounds) constants() string {
	clients := b.clients
	var text strings.Builder
	if clients == nil {
		clients = []string{"a", "b"}
		text.WriteString("  a = a\n  b = b\n")
	}
	fields := make([]string, b.fields)
	for i := range fields {
		fields[i] = strconv.Itoa(i + 1)
	}
	leases := make([]string, len(b.leases))
	for i, lease := range b.leases {
		leases[i] = strconv.Itoa(lease)
	}
	may := make([]string, len(b.may))
	for i, name := range b.may {
		may[i] = strconv.Quote(name)
	}
	for _, c := range []struct {
		name  string
		value any
	}{
		{"Clients", set(clients)},
		{"Turns", b.turns},
		{"Others", b.others},
		{"Fields", set(fields)},
		{"Long", b.long},
		{"Short", b.short},
		{"Leases", set(leases)},
		{"Margin", b.margin},
		{"MaxDrift", b.drift},
		{"MaxLost", b.lost},
		{"MaxLate", b.late},
		{"May", set(may)},
		{"Mutant", strconv.Quote(b.mutant)},
	} {
		fmt.Fprintf(&text, "  %s = %v\n", c.name, c.value)
	}
	return text.String()
}

func set(elements []string) string { return "{" + strings.Join(elements, ", ") + "}" }

// result is the result of a search.
type result struct {
	violated string // the violated invariant; temporal for a temporal property, which TLC does not name
	states   int
	output   string
}

// temporal stands for the only temporal property of a check.
const temporal = "a temporal property"

var (
	invariantText = regexp.MustCompile(`Invariant (\w+) is violated`)
	statesText    = regexp.MustCompile(`(\d+) distinct states found`)
)

// The exit statuses of TLC after a complete search. All others mean an error in the model, in a
// configuration, or of the machine.
const (
	statusHolds    = 0
	statusSafety   = 12
	statusLiveness = 13
)

// alone allows one TLC at a time, because each uses all processors.
var alone sync.Mutex

// search runs TLC on a module in a folder. Without a jar it skips the test.
func search(t *testing.T, dir, module, config string) result {
	t.Helper()
	name := filepath.Join(dir, module+".cfg")
	if err := os.WriteFile(name, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	path := jar(t)
	alone.Lock()
	defer alone.Unlock()
	began := time.Now()
	cmd := exec.CommandContext(t.Context(), "java", "-XX:+UseParallelGC", "-Xmx3g", "-Djava.io.tmpdir="+dir, "-cp", path, "tlc2.TLC",
		"-workers", "auto", "-metadir", filepath.Join(dir, "states"), "-config", name, module+".tla")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	r := result{output: string(out)}
	if counts := statesText.FindAllStringSubmatch(r.output, -1); counts != nil {
		r.states, _ = strconv.Atoi(counts[len(counts)-1][1])
	}
	invariant := invariantText.FindStringSubmatch(r.output)
	switch status := cmd.ProcessState.ExitCode(); {
	case status == statusHolds && strings.Contains(r.output, "No error has been found"):
	case status == statusSafety && invariant != nil:
		r.violated = invariant[1]
	case status == statusLiveness && strings.Contains(r.output, "Temporal properties were violated"):
		r.violated = temporal
	default:
		t.Fatalf("TLC: %v\n%s", err, r.output)
	}
	t.Logf("%d states, %.1fs", r.states, time.Since(began).Seconds())
	return r
}

// jar returns the path of TLC. If it is not set, jar skips the test.
func jar(t *testing.T) string {
	t.Helper()
	path := os.Getenv(jarEnv)
	if path == "" {
		t.Skipf("%s is not set to the path of the jar of TLC", jarEnv)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s: %v", jarEnv, err)
	}
	return path
}

// folder creates a folder with copies of the modules in this one.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"Lock.tla", "Trace.tla"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
