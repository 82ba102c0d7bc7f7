package ruleset_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func ExampleLoad() {
	set, err := ruleset.Load("locks.yaml", []byte(`
profiles:
  default: {wait_time: 5s}
  checkout: {lease_time: 20s, on_busy: skip}
rules:
  - http: POST /orders/:id/pay
    key: "order:pay:#{path.id}"
    profile: checkout
  - grpc: /shop.Orders/*
    key: "order:#{req.order_id}"
    wait_time: none
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range set.Rules() {
		fmt.Println(r.Endpoint, r.Source("key"))
		fmt.Println("  wait_time comes from", r.Source("wait_time"))
		fmt.Println("  lease_time comes from", r.Source("lease_time"))
	}
	// Output:
	// http POST /orders/:id/pay locks.yaml:7:10
	//   wait_time comes from default, locks.yaml:3:24
	//   lease_time comes from profile checkout, locks.yaml:4:26
	// grpc /shop.Orders/* locks.yaml:10:10
	//   wait_time comes from locks.yaml:11:16
	//   lease_time comes from default
}

const smallFile = "rules:\n  - {func: a, key: a}\n"

func TestOpen_NamesTheFileAsGiven(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks.yaml")
	if err := os.WriteFile(path, []byte(smallFile), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := ruleset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	want := ruleset.Source{Layer: ruleset.LayerYAML, File: path, Line: 2, Column: 20}
	if got := live.Current().Rules()[0].Source("key"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOpen_Unreadable(t *testing.T) {
	t.Parallel()
	_, err := ruleset.Open(filepath.Join(t.TempDir(), "none.yaml"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: got %v", err)
	}
	if _, err := ruleset.Open(t.TempDir()); err == nil {
		t.Error("a folder: got no error")
	}
}

func TestLoad_TooLargeOrTooDeep(t *testing.T) {
	t.Parallel()
	huge := smallFile + "#" + strings.Repeat("x", 4<<20)
	for want, text := range map[string]string{
		"locks.yaml: larger than 4 MiB":                              huge,
		"nested too deeply":                                          "rules: " + strings.Repeat("[", 12_000),
		"locks.yaml:1000:1: more problems follow: correct those abo": strings.Repeat("a: 1\n", 2_000),
	} {
		start := time.Now()
		_, err := ruleset.Load("locks.yaml", []byte(text))
		if _, ok := errors.AsType[*ruleset.InvalidError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("got %.200v, want %q", err, want)
		}
		if took := time.Since(start); took > soon() {
			t.Errorf("%s: took %s", want, took)
		}
	}
}

// TestLoad_OneLongLine: places are found in a time that is not the square of the
// length, which would be minutes.
func TestLoad_OneLongLine(t *testing.T) {
	t.Parallel()
	var rules []string
	for i := range 30_000 {
		rules = append(rules, fmt.Sprintf(`{"func": "é%d", "key": "a"}`, i))
	}
	text := `{"rules": [` + strings.Join(rules, ", ") + `]}`
	start := time.Now()
	set := mustLoad(t, text)
	if took := time.Since(start); took > soon() {
		t.Errorf("took %s", took)
	}
	last := set.Rules()[len(rules)-1].Source("key")
	if want := len([]rune(text)) - len(`"a"}]}`) + 1; last.Line != 1 || last.Column != want {
		t.Errorf("got %s, want column %d", last, want)
	}
}

func TestLoad_TheFileIsLaidOverTheProgram(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, `
profiles:
  default: {wait_time: 2s}
  quick: {lease_time: 2s}
rules:
  - {func: a, lease_time: 7s}
  - {func: b, profile: quick}
`,
		ruleset.WithProfile("default", ruleset.Rule{WaitTime: time.Second, Prefix: "shop:"}),
		ruleset.WithProfile("quick", ruleset.Rule{WaitTime: time.Minute, LeaseTime: time.Minute}),
		ruleset.WithRules(
			ruleset.Rule{Endpoint: ruleset.Func("a"), Key: "a", LeaseTime: time.Second, OnBusy: failpolicy.Skip},
			ruleset.Rule{Endpoint: ruleset.Func("b"), Key: "b"},
		))
	a, b := set.Match(ruleset.Func("a"))[0], set.Match(ruleset.Func("b"))[0]
	for what, got := range map[string]bool{
		"defaults of the file":        a.WaitTime == 2*time.Second,
		"defaults of the program":     a.Prefix == "shop:",
		"the rule of the file":        a.LeaseTime == 7*time.Second,
		"the rule of the program":     a.Key == "a" && a.OnBusy == failpolicy.Skip,
		"the file's profile replaces": b.LeaseTime == 2*time.Second && b.WaitTime == 2*time.Second,
		"nothing partial is left":     !a.Partial() && !b.Partial(),
	} {
		if !got {
			t.Errorf("%s: got %+v, %+v", what, a.Rule, b.Rule)
		}
	}
}

func TestLoad_ServicesLeaveOutWhatIsOfOthers(t *testing.T) {
	t.Parallel()
	const text = `
rules:
  - {func: a, key: a, services: [shop, billing]}
  - {func: b, key: b, services: [billing]}
  - {func: c, key: c}
`
	for service, want := range map[string]string{"shop": "a c", "billing": "a b c", "stock": "c"} {
		var names []string
		for _, r := range mustLoad(t, text, ruleset.WithService(service)).Rules() {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %q, want %q", service, got, want)
		}
	}
}

func TestLoad_SwitchesReachEveryRuleAndNameTheirPlace(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, "dry_run: true\nrules:\n  - {func: a, key: a, dry_run: false, disabled: true}\n",
		ruleset.WithRules(ruleset.Rule{Endpoint: ruleset.Func("b"), Key: "b"}))
	for _, r := range set.Rules() {
		if source := r.Source("dry_run"); !r.DryRun || source.Line != 1 || source.Column != 10 {
			t.Errorf("%s: dry_run is %t from %s", r.Name, r.DryRun, source)
		}
		if want := r.Name == "a"; r.Disabled != want {
			t.Errorf("%s: disabled is %t: a switch that is off changed it", r.Name, r.Disabled)
		}
	}
}

func TestLoad_ProblemsOfTheProgramComeFirst(t *testing.T) {
	t.Parallel()
	_, err := ruleset.Load("locks.yaml", []byte("rules:\n  - {func: a, key: a, wait_time: 5}\n"),
		ruleset.WithProfile("default", ruleset.Rule{LeaseTime: 5}), ruleset.WithRules(ruleset.Rule{Endpoint: ruleset.HTTP("POST /b")}))
	want := []string{"defaults: LeaseTime", "rule of http POST /b: Key", "locks.yaml:2:34: rule of func a: wait_time"}
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	if !ok || len(invalid.Problems) != len(want) {
		t.Fatalf("got %v", err)
	}
	for i, p := range invalid.Problems {
		if !strings.HasPrefix(p.Error(), want[i]) {
			t.Errorf("got %s, want %s…", p, want[i])
		}
	}
}

// TestLoad_PartsHaveTheirOwnPlace: a list and a status over several lines.
func TestLoad_PartsHaveTheirOwnPlace(t *testing.T) {
	t.Parallel()
	r := onlyRule(t, `rules:
  - func: a
    keys:
      - a
      - b
    status:
      busy:
        http: 423
`)
	for field, want := range map[string]string{
		"keys": "locks.yaml:4:7", "keys[1]": "locks.yaml:5:9", "status.busy.http": "locks.yaml:8:15", "status.key.http": "locks.yaml:7:7", "when": "locks.yaml:2:5",
	} {
		if got := r.Problem(field, "bad").Source.String(); got != want {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
}

func TestLoad_WindowsAndUnixFilesSayTheSame(t *testing.T) {
	t.Parallel()
	unix := "rules:\n  - func: a\n    key: a\n    when: |\n      in.A\n      && in.B\n"
	a, b := onlyRule(t, unix), onlyRule(t, "\ufeff"+strings.ReplaceAll(unix, "\n", "\r\n"))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got %+v and %+v", a, b)
	}
}
