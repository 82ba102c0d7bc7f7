package ruleset_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// task returns the endpoint of the rule in most files of these tests.
func task() ruleset.Endpoint { return ruleset.Func("task") }

// keyed returns a file whose rule has the key. Another wait time yields different content with the
// same key.
func keyed(key string, seconds ...int) string {
	text := fmt.Sprintf("rules:\n  - func: task\n    key: %q\n", key)
	for _, s := range seconds {
		text += fmt.Sprintf("    wait_time: %ds\n", s)
	}
	return text
}

const broken = "rules:\n  - func: task\n    kye: a\n"

// fileWith writes a new file and returns its path.
func fileWith(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "locks.yaml")
	rulesettest.Write(t, path, text)
	return path
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:12]
}

func mustSet(tb testing.TB, rules ...ruleset.Rule) *ruleset.Set {
	tb.Helper()
	set, err := ruleset.NewSet(rules)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func load(tb testing.TB, name, text string) *ruleset.Set {
	tb.Helper()
	set, err := ruleset.Load(name, []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func mustLoad(tb testing.TB, text string, opts ...ruleset.Option) *ruleset.Set {
	tb.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(text), opts...)
	if err != nil {
		tb.Fatalf("%v in\n%s", err, text)
	}
	return set
}

func onlyRule(tb testing.TB, text string, opts ...ruleset.Option) *ruleset.Resolved {
	tb.Helper()
	rules := mustLoad(tb, text, opts...).Rules()
	if len(rules) != 1 {
		tb.Fatalf("got %d rules in\n%s", len(rules), text)
	}
	return rules[0]
}

// namesOf returns the names of rules, in their order.
func namesOf(rules []*ruleset.Resolved) []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}

// onlyProblem returns the only problem of a file.
func onlyProblem(t *testing.T, text string) *ruleset.Problem {
	t.Helper()
	_, err := ruleset.Load("locks.yaml", []byte(text), ruleset.WithService("shop"))
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	if !ok || len(invalid.Problems) != 1 {
		t.Fatalf("got %v, want one problem in\n%s", err, text)
	}
	return invalid.Problems[0]
}

// wantOnlyProblem checks that there is one problem, which contains want. For "" it checks that there is no
// error.
func wantOnlyProblem(t *testing.T, err error, want string) {
	t.Helper()
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	switch {
	case want == "" && err == nil:
	case !ok || len(invalid.Problems) != 1 || want == "" || !strings.Contains(err.Error(), want):
		t.Errorf("got %v, want a problem with %q", err, want)
	}
}

// wantProblems checks that err contains the parts, in their order.
func wantProblems(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("got no error, want %q", parts)
		return
	}
	rest := err.Error()
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("got %v, want it to say %q", err, part)
		}
		rest = after
	}
}

// yamlSet returns a set of rules as a file would declare them.
func yamlSet(t *testing.T, rules []ruleset.Rule) *ruleset.Set {
	t.Helper()
	var declared []ruleset.Declared
	for i, r := range rules {
		declared = append(declared, ruleset.Declared{
			Rule: r, Source: ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 2 * (i + 1), Column: 5},
		})
	}
	set, err := ruleset.BuildSet(declared)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func ruleLines(t *testing.T, lines string) *ruleset.Set {
	t.Helper()
	return load(t, "locks.yaml", "rules:\n- "+strings.ReplaceAll(lines, "\n", "\n- ")+"\n")
}

// overCode loads a file over one rule of the program, which is on POST /a.
func overCode(t *testing.T, text string, r ruleset.Rule) (*ruleset.Resolved, error) {
	t.Helper()
	r.Endpoint = ruleset.HTTP("POST /a")
	if r.Key == "" && r.Keys == nil && !r.None {
		r.Key = "a"
	}
	set, err := ruleset.Load("locks.yaml", []byte(text), ruleset.WithRules(r))
	if err != nil {
		return nil, err
	}
	return set.Rules()[0], nil
}

// fromProto declares rules like the options of a method.
func fromProto(rules ...ruleset.Rule) []ruleset.Declared {
	var declared []ruleset.Declared
	for i, r := range rules {
		declared = append(declared, ruleset.Declared{
			Rule: r, Source: ruleset.Source{Layer: ruleset.LayerProto, File: "shop.proto", Line: 10 * (i + 1), Column: 5},
		})
	}
	return declared
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }
