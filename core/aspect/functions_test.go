package aspect_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// mutableProvider is a Provider with a set that tests replace.
type mutableProvider struct {
	set      *ruleset.Set
	prepares []ruleset.Prepare
}

func (p *mutableProvider) Current() *ruleset.Set { return p.set }

func (p *mutableProvider) Subscribe(prepare ruleset.Prepare) (cancel func(), err error) {
	p.prepares = append(p.prepares, prepare)
	commit, err := prepare(p.set)
	if err == nil {
		commit()
	}
	return func() {}, err
}

// replace reloads the set.
func (p *mutableProvider) replace(set *ruleset.Set) error {
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

// file returns a set of declarations in the layer of files.
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

func TestCheck_FunctionsNotWrapped(t *testing.T) {
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
	p := &mutableProvider{set: file(t, ruleset.Rule{Endpoint: payFunc, Key: "a"})}
	a = mustAspect(t, b.observe(t, seen.observer()), aspect.WithSet(p))
	mustWrap(t, a, ruleset.Rule{Endpoint: payFunc}, charge)
	if err := errors.Join(a.Check(), a.Check()); err != nil {
		t.Error(err)
	}
	if err := p.replace(set); err == nil || !strings.Contains(err.Error(), "func pya") {
		t.Errorf("the reload: got %v", err)
	}
}

// warnings records the warnings that an observer gets.
type warnings []*ruleset.Problem

// take returns the recorded warnings as texts, sorted, and forgets them.
func (w *warnings) take() []string {
	var texts []string
	for _, p := range *w {
		texts = append(texts, p.Error())
	}
	*w = nil
	slices.Sort(texts)
	return texts
}

func (w *warnings) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Warning: func(p *ruleset.Problem) { *w = append(*w, p) }}}
}

func TestCheck_SeverityOfTheFile(t *testing.T) {
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
		err = mustAspect(t, b.observe(t, seen.observer()), aspect.WithSet(set)).Check()
		if (err != nil) != want.failed || len(seen) != want.warned {
			t.Errorf("%s: got %v and %d warnings", severity, err, len(seen))
		}
	}
}

// A failed Check may be repeated. Reloads are checked only after a Check has passed.
func TestCheck_JudgesReloadsAfterItHasPassed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := &mutableProvider{set: file(t, ruleset.Rule{Endpoint: payFunc, Key: "a"})}
	a := mustAspect(t, b.locks, aspect.WithSet(p))
	if err := a.Check(); err == nil {
		t.Error("Check passes before any function is wrapped")
	}
	mustWrap(t, a, ruleset.Rule{Name: "pay"}, charge)
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	more := file(t, ruleset.Rule{Endpoint: payFunc, Key: "a"}, ruleset.Rule{Endpoint: ruleset.Func("pya"), Key: "b"})
	if err := p.replace(more); err == nil {
		t.Error("a rule without a function came into force")
	}
}
