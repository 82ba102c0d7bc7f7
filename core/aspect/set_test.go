package aspect_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// replaceable is a Provider whose set a test replaces.
type replaceable struct {
	set      *ruleset.Set
	prepares []ruleset.Prepare
}

func (p *replaceable) Current() *ruleset.Set { return p.set }

func (p *replaceable) Subscribe(prepare ruleset.Prepare) (cancel func(), err error) {
	p.prepares = append(p.prepares, prepare)
	commit, err := prepare(p.set)
	if err == nil {
		commit()
	}
	return func() {}, err
}

// replace is a reload.
func (p *replaceable) replace(set *ruleset.Set) error {
	var commits []func()
	for _, prepare := range p.prepares {
		commit, err := prepare(set)
		if err != nil {
			return err
		}
		commits = append(commits, commit)
	}
	for _, commit := range commits {
		commit()
	}
	p.set = set
	return nil
}

// file is a set as from a file: declarations of the highest layer.
func file(tb testing.TB, rules ...ruleset.Rule) *ruleset.Set {
	tb.Helper()
	declared := make([]ruleset.Declared, len(rules))
	for i, r := range rules {
		declared[i] = ruleset.Declared{Rule: r, Source: ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: i + 1, Column: 1}}
	}
	set, err := ruleset.BuildSet(declared)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

var payFunc = ruleset.Func("pay")

func TestWrap_UnderASet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	seen := &record{}
	p := &replaceable{set: file(t, ruleset.Rule{Endpoint: payFunc, Key: "order:#{in.ID}"})}
	a := mustAspect(t, b.observed(t, seen.observer()), aspect.WithSet(p))
	held := func(ctx context.Context, _ order) (string, error) {
		names, err := b.rdb.Keys(ctx, "*").Result()
		slices.Sort(names)
		return strings.Join(names, " "), err
	}
	fn := mustWrap(t, a, ruleset.Rule{Endpoint: payFunc}, held)
	run := func(want string) {
		t.Helper()
		if got, err := fn(t.Context(), order{ID: "42"}); err != nil || got != want {
			t.Errorf("held %q, %v, want %q", got, err, want)
		}
	}
	run("order:42")

	if err := p.replace(file(t, ruleset.Rule{Endpoint: payFunc, Key: "new:#{in.ID}", Name: "renamed"})); err == nil {
		t.Error("another lock was taken into force")
	}
	both := []string{"order:#{in.ID}", "new:#{in.ID}"}
	if err := p.replace(file(t, ruleset.Rule{Endpoint: payFunc, Keys: both, Name: "renamed"})); err != nil {
		t.Fatal(err)
	}
	run("new:42 order:42")
	if err := p.replace(file(t, ruleset.Rule{Endpoint: payFunc, Key: "new:#{in.ID}", Name: "renamed"})); err != nil {
		t.Fatal(err)
	}
	run("new:42")
	if err := p.replace(file(t, ruleset.Rule{Endpoint: payFunc, Key: "new:#{in.ID}", Name: "renamed", Disabled: true})); err != nil {
		t.Fatal(err)
	}
	run("")

	for _, bad := range []*ruleset.Set{
		file(t, ruleset.Rule{Endpoint: payFunc, Key: "new:#{in.Id}"}), file(t),
		file(t, ruleset.Rule{Endpoint: payFunc, Key: "k", OnBusy: failpolicy.Fallback, Fallback: "nobody"}),
	} {
		if err := p.replace(bad); err == nil {
			t.Errorf("a set with %d rules was taken", len(bad.Rules()))
		}
	}
	run("")
	told := map[string]int{}
	for _, r := range seen.rules {
		told[r.Rule+map[bool]string{true: " gone"}[r.Retracted]]++
	}
	if want := map[string]int{"pay": 1, "pay gone": 1, "renamed": 3}; !maps.Equal(told, want) {
		t.Errorf("observers were notified of %v, want %v", told, want)
	}
}

func TestWrap_SetOverCode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	code := ruleset.Rule{Endpoint: payFunc, Name: "charge", Key: "order:#{in.ID}", WaitTime: time.Second}
	wait := func(overlay ...ruleset.Rule) error {
		a := mustAspect(t, b.locks, aspect.WithSet(file(t, overlay...)))
		_, err := aspect.Wrap(a, code, charge)
		return err
	}
	if err := wait(ruleset.Rule{Endpoint: payFunc, Name: "charge", WaitTime: 2 * time.Second}); err != nil {
		t.Error(err)
	}
	if err := wait(); err != nil {
		t.Error(err)
	}
	err := wait(ruleset.Rule{Endpoint: payFunc, Name: "chrage", WaitTime: 2 * time.Second})
	if err == nil || !strings.Contains(err.Error(), `locks.yaml:1:1: rule "chrage" of func pay: key: missing`) || !strings.Contains(err.Error(), `"charge"`) {
		t.Errorf("got %v", err)
	}
}

func TestNew_SetBesideDefaults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := aspect.New(b.locks, aspect.WithSet(file(t)), aspect.WithProfile("default", ruleset.Rule{WaitTime: time.Second}))
	if err == nil || !strings.Contains(err.Error(), "beside WithSet") {
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

func TestCheck_FunctionsThatNobodyWrapped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	set := file(t,
		ruleset.Rule{Endpoint: payFunc, Key: "a"}, ruleset.Rule{Endpoint: ruleset.Func("pya"), Key: "b"},
		ruleset.Rule{Endpoint: ruleset.HTTP("POST /x"), Key: "c"})
	a := mustAspect(t, b.locks, aspect.WithSet(set))
	mustWrap(t, a, ruleset.Rule{Endpoint: payFunc}, charge)
	err := a.Check()
	want := `ruleset: locks.yaml:2:1: rule of func pya: func: matches no wrapped function: did you mean "pay"?`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}

	seen := &record{}
	p := &replaceable{set: file(t, ruleset.Rule{Endpoint: payFunc, Key: "a"})}
	a = mustAspect(t, b.observed(t, seen.observer()), aspect.WithSet(p))
	mustWrap(t, a, ruleset.Rule{Endpoint: payFunc}, charge)
	if err := errors.Join(a.Check(), a.Check()); err != nil {
		t.Error(err)
	}
	if err := p.replace(set); err == nil || !strings.Contains(err.Error(), "func pya") {
		t.Errorf("the reload: got %v", err)
	}
}

// warnings keeps what an observer is warned of.
type warnings []*ruleset.Problem

func (w *warnings) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Warning: func(p *ruleset.Problem) { *w = append(*w, p) }}}
}

func TestCheck_AsSevereAsTheFileSays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for severity, want := range map[string]struct {
		warned int
		failed bool
	}{"error": {0, true}, "warn": {1, false}, "ignore": {0, false}} {
		set, err := ruleset.Load("locks.yaml", []byte("unmatched: "+severity+"\nrules:\n  - {func: pay, key: pay}\n"))
		if err != nil {
			t.Fatal(err)
		}
		var seen warnings
		err = mustAspect(t, b.observed(t, seen.observer()), aspect.WithSet(set)).Check()
		if (err != nil) != want.failed || len(seen) != want.warned {
			t.Errorf("%s: got %v and %d warnings", severity, err, len(seen))
		}
	}
}

// A Check that fails is made again; what counts is that one has passed.
func TestCheck_JudgesReloadsOnceItHasPassed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := &replaceable{set: file(t, ruleset.Rule{Endpoint: payFunc, Key: "a"})}
	a := mustAspect(t, b.locks, aspect.WithSet(p))
	if err := a.Check(); err == nil {
		t.Error("nothing is wrapped yet")
	}
	mustWrap(t, a, ruleset.Rule{Name: "pay"}, charge)
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	more := file(t, ruleset.Rule{Endpoint: payFunc, Key: "a"}, ruleset.Rule{Endpoint: ruleset.Func("pya"), Key: "b"})
	if err := p.replace(more); err == nil {
		t.Error("a rule without a function was taken into force")
	}
}

// A function without a rule: the message names the file, and the function that may be meant.
func TestWrap_NoRuleInTheFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const add = "add one for func: close-day; disabled: true lets it run unlocked"
	for text, want := range map[string]string{
		"rules:\n- {func: close-dya, key: k}\n": `locks.yaml: rule of func close-day: neither the program nor the set has a rule: did you mean "close-dya"? Otherwise ` + add,
		"rules:\n- {func: refund, key: k}\n":    "locks.yaml: rule of func close-day: neither the program nor the set has a rule: " + add,
		"rules: []\n":                           "locks.yaml: rule of func close-day: neither the program nor the set has a rule: " + add,
	} {
		set, err := ruleset.Load("locks.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		a := mustAspect(t, b.locks, aspect.WithSet(set))
		_, err = aspect.Wrap(a, ruleset.Rule{Endpoint: ruleset.Func("close-day")}, charge)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestWrap_RuleThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, bare := range []ruleset.Rule{{Name: "pay"}, {Endpoint: payFunc}} {
		p := &replaceable{set: file(t, ruleset.Rule{Endpoint: payFunc, Key: "a"})}
		mustWrap(t, mustAspect(t, b.locks, aspect.WithSet(p)), bare, charge)
		err := p.replace(file(t, ruleset.Rule{Endpoint: ruleset.Func("pya"), Key: "a"}))
		if err == nil || !strings.Contains(err.Error(), "neither the program nor the set has a rule") {
			t.Errorf("got %v", err)
		}
	}
}
