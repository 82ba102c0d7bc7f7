package ruleset_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/interlock-go/interlock/core/internal/thorough"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

const smallFile = "rules:\n  - {func: a, key: a}\n"

func TestLoad_OverProgram(t *testing.T) {
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

func TestLoad_SettingForEveryRule(t *testing.T) {
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

func TestLoad_OrderOfProblems(t *testing.T) {
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

// The time to find the places of problems grows linearly with the length of a line. Quadratic growth would
// take minutes.
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

// soon returns the time limit for loading a file. There is a limit only if INTERLOCK_TIMES=1 declares that
// the machine is idle. Otherwise the time limit of go test suffices, because a loader that is not linear
// takes hours.
func soon() time.Duration {
	if os.Getenv("INTERLOCK_TIMES") == "1" {
		return 2 * time.Minute
	}
	return math.MaxInt64
}

// repeated returns a text with n numbered parts.
func repeated(head, part, tail string, n int) string {
	var text strings.Builder
	text.WriteString(head)
	for i := range n {
		text.WriteString(strings.ReplaceAll(part, "#", fmt.Sprint(i)))
	}
	text.WriteString(tail)
	return text.String()
}

// bombs returns files of less than 4 MiB that once took minutes or gigabytes, by the beginning of the message
// of their first problem.
func bombs() map[string]string {
	profiles := repeated("profiles:\n", "  p#: {wait_time: 1s}\n", "rules:\n", 900)
	long := strings.Repeat("a", 3<<20)
	return map[string]string{
		"locks.yaml:903:31: rule of func f0: profile: unknown profile \"nope0\"": repeated(profiles, "- {func: f#, key: a, profile: nope#}\n", "", 49_000),
		"locks.yaml:3:9: rule of func a: keys: 290000 templates":                 repeated("rules:\n- func: a\n  keys: [", "a#,", "a]\n", 289_999),
		"locks.yaml:4:3: rule of func a: services: 280000 programs":              repeated("rules:\n- func: a\n  services:\n", "  - a#\n", "", 280_000),
		"locks.yaml: more than 300000 lines and values":                          repeated("{", "a#,", "a: b}\n", 300_001),
		"locks.yaml:2:1: rules: 60000 rules":                                     repeated("rules:\n", "- {func: f#, key: a}\n", "", 60_000),
		"locks.yaml:2:3: profiles: 60000 profiles":                               repeated("profiles:\n", "  p#: {wait_time: 1s}\n", "rules: []\n", 60_000),
		"locks.yaml:2:5: profiles: a name of 3145728 bytes":                      repeated("profiles:\n  ? "+long+"\n  :\n", "    k#: a\n", "rules: []\n", 10_000),
		"locks.yaml:2:9: func: 3145728 bytes long":                               repeated("rules:\n- func: "+long+"\n", "  k#: a\n", "", 10_000),
		"locks.yaml:3:9: rule of func a: name: 3145728 bytes long":               repeated("rules:\n- func: a\n  name: "+long+"\n", "  k#: a\n", "", 10_000),
		"locks.yaml:2:3: rule of http GET /0: key: missing":                      repeated("rules:\n", "- {http: GET /#}\n", "", 50_000),
		"locks.yaml:3:3: rule of func f: name: declared twice":                   repeated("rules:\n", "- {func: f, key: a}\n", "", 50_000),
		"locks.yaml:2:19: rule \"n0\" of func f: name: given together with none": repeated("rules:\n", "- {func: f, name: n#, none: true}\n", "", 49_000),
		"locks.yaml:1:2: a0: unknown field":                                      repeated("{", "a#,", "a: b}\n", 299_000),
		"locks.yaml:1:28: rule of func a: on_busy: unknown strategy":             "rules: [{func: a, on_busy: " + long + "}]\n",
	}
}

// Every file is loaded or refused soon, with a message of readable size. The limits are far above the
// measured values and far below the values of a quadratic loader.
func TestLoad_Bombs(t *testing.T) {
	t.Parallel()
	const maxProblems, maxText = 1000, 1 << 20
	largest := thorough.Or(4<<20, 1_200_000) // loading uses one goroutine
	for want, text := range bombs() {
		if len(text) > largest {
			continue
		}
		start := time.Now()
		_, err := ruleset.Load("locks.yaml", []byte(text))
		if took := time.Since(start); took > soon() {
			t.Errorf("%s: took %s", want, took)
		}
		invalid, ok := errors.AsType[*ruleset.InvalidError](err)
		if !ok {
			t.Errorf("%s: got %v", want, err)
			continue
		}
		if first := invalid.Problems[0].Error(); !strings.HasPrefix(first, want) {
			t.Errorf("got %.200s, want %s", first, want)
		}
		if n, size := len(invalid.Problems), len(err.Error()); n > maxProblems || size > maxText {
			t.Errorf("%s: %d problems in %d bytes", want, n, size)
		}
	}
}

func TestLoad_TooManyProblems(t *testing.T) {
	t.Parallel()
	_, err := ruleset.Load("locks.yaml", []byte(repeated("rules:\n", "- {http: GET /#}\n", "", 1_500)))
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	if !ok || len(invalid.Problems) != 1000 {
		t.Fatalf("got %.200v, want 1000 problems", err)
	}
	if got, want := invalid.Problems[999].Error(), "locks.yaml:1001:3: and 501 more problems: correct those above first"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLoad_UnknownAmongManyProfiles(t *testing.T) {
	t.Parallel()
	text := repeated("profiles:\n", "  p#: {wait_time: 1s}\n", "rules: [{func: a, key: a, profile: p900x}]\n", 999)
	_, err := ruleset.Load("locks.yaml", []byte(text))
	want := `unknown profile "p900x": write "p900" (one of quick, normal, heavy, long, p0, p1, p2, p3, p4, p5, and 993 more)`
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A file of the largest allowed size loads.
func TestLoad_LargestFile(t *testing.T) {
	t.Parallel()
	const most = 17_000
	rules := thorough.Or(most, 1_000) // loading uses one goroutine
	text := bigFile(rules)
	if size := len(text); rules == most && (size < 4_000_000 || size > 4<<20) {
		t.Fatalf("%d bytes", size)
	}
	set, err := ruleset.Load("locks.yaml", []byte(text))
	if err != nil || len(set.Rules()) != rules {
		t.Fatalf("got %d rules, %v", len(set.Rules()), err)
	}
}

// A file of comments takes no longer than other files of its size. If the search for every comment started at
// the beginning of the file, it would take hours.
func TestLoad_ManyComments(t *testing.T) {
	t.Parallel()
	const maxProblems = 1000
	const head = "rules:\n- http: POST /orders\n  key: order\n"
	size := thorough.Or(4<<20, 1<<20) // loading uses one goroutine
	for comment, want := range map[string]int{"  # one\n": 0, "  #{x}\n": maxProblems, "    #{\n": maxProblems, "#{x}\n": maxProblems} {
		text := head + strings.Repeat(comment, (size-len(head))/len(comment))
		start := time.Now()
		_, err := ruleset.Load("locks.yaml", []byte(text))
		if took := time.Since(start); took > soon() {
			t.Errorf("%q: took %s", comment, took)
		}
		invalid, ok := errors.AsType[*ruleset.InvalidError](err)
		if ok != (want > 0) || ok && len(invalid.Problems) != want {
			t.Fatalf("%q: got %.200v, want %d problems", comment, err, want)
		}
		if ok && !strings.HasPrefix(invalid.Problems[want-1].Message, "more problems follow") {
			t.Errorf("%q: got %v as the last problem", comment, invalid.Problems[want-1])
		}
	}
}

func BenchmarkLoad_10000Rules(b *testing.B) {
	text := []byte(bigFile(10_000))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ruleset.Load("locks.yaml", text); err != nil {
			b.Fatal(err)
		}
	}
}

// bigFile returns a file with n rules in every notation.
func bigFile(n int) string {
	var text strings.Builder
	text.WriteString("profiles:\n  default: {wait_time: 5s}\n  checkout: {lease_time: 20s, on_busy: skip}\nrules:\n")
	for i := range n {
		fmt.Fprintf(&text, "  - http: POST /shop/%d/orders/:id\n    name: order-%d\n", i, i)
		text.WriteString("    key: \"order:pay:#{path.id}\"\n    wait_time: 10s\n    lease_time: 30s\n")
		text.WriteString("    on_backend: proceed\n    profile: checkout # as all of them\n    status: {busy: {http: 423, grpc: ABORTED}}\n")
	}
	return text.String()
}

// isInvisible reports whether a character moves the cursor or changes the output of a terminal.
func isInvisible(r rune) bool { return unicode.IsControl(r) && r != '\n' || r == '\u202e' }

// FuzzLoad checks that no file causes a panic. Every file yields a set or an InvalidError whose problems have
// places and only visible characters.
func FuzzLoad(f *testing.F) {
	for _, folder := range []string{"valid", "invalid"} {
		paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
		if err != nil || len(paths) == 0 {
			f.Fatalf("no samples: %v", err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte(`{"\e[31m": 1, "\u202e": 1, "\x7f": 1, "\x7f": 1, profiles: {"\e": {"\e": 1}, default: 1, "\u202e": {"\e": 1}}, ` +
		`rules: [{http: "/\e", "\e": 1, status: {busy: {"\e": 1}}, profile: "\u202e"}]}`))
	f.Add([]byte("name: \t%"))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := ruleset.Load("locks.yaml", text, ruleset.WithService("shop-api"))
		if err == nil {
			if set == nil {
				t.Error("neither a set nor an error")
			}
			return
		}
		invalid, ok := errors.AsType[*ruleset.InvalidError](err)
		if !ok || set != nil || len(invalid.Problems) == 0 {
			t.Fatalf("got %v, %v", set, err)
		}
		line, column := 0, 0
		for _, p := range invalid.Problems {
			if p.Message == "" || p.Source.File != "locks.yaml" || p.Source.Line < 1 || p.Source.Column < 1 {
				t.Errorf("no place or no message: %+v", p)
			}
			if strings.ContainsFunc(p.Error(), isInvisible) {
				t.Errorf("not fit for a terminal: %q", p.Error())
			}
			if p.Source.Line < line || p.Source.Line == line && p.Source.Column < column {
				t.Errorf("not sorted by line: %v", err)
			}
			line, column = p.Source.Line, p.Source.Column
		}
	})
}
