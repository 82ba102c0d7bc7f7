package aspect_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// sharedFile has rules for a wrapped function, for topics and for jobs.
const sharedFile = `rules:
- {func: close-day, key: close}
- {func: topic/orders, key: "#{topic}"}
- {func: topic/*, key: "#{topic}"}
- {func: job/nightly, key: "#{topic}"}
`

// rename returns [topics] with another prefix and noun.
func rename(a *aspect.Aspect, prefix, noun string) aspect.Adapter[string, int] {
	adapter := topics(a)
	adapter.Prefix, adapter.Noun = prefix, noun
	adapter.Endpoint = func(name string) ruleset.Endpoint { return ruleset.Func(prefix + name) }
	compile := adapter.Compile
	adapter.Compile = func(set *ruleset.Set, name string, rules []*ruleset.Resolved) (*aspect.Point, int, error) {
		return compile(set, prefix+name, rules)
	}
	return adapter
}

// checkShared returns the problems of all users of a file: topics, jobs, and wrapped functions.
func checkShared(t *testing.T, file string) (problems []string) {
	t.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	a := mustAspect(t, newBench(t).locks, aspect.WithSet(set))
	for _, r := range []*aspect.Registry[string, int]{
		aspect.NewRegistry(a, rename(a, "topic/", "topic")), aspect.NewRegistry(a, rename(a, "job/", "job")),
	} {
		if _, err := r.Table(set); err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Check("orders", "refunds", "nightly").Errors() {
			problems = append(problems, p.Error())
		}
	}
	closeDay := func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }
	if _, err := aspect.Wrap(a, ruleset.Rule{Endpoint: ruleset.Func("close-day")}, closeDay); err != nil {
		t.Fatal(err)
	}
	if err := a.Check(); err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

func TestAdapter_PrefixSharesARuleFile(t *testing.T) {
	t.Parallel()
	if problems := checkShared(t, sharedFile); len(problems) > 0 {
		t.Errorf("got %q", problems)
	}
}

func TestAdapter_PrefixReportsEachRuleOnce(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"topic/ordres": `matches no topic: did you mean "topic/orders"?`,
		"topic/else":   "matches no topic: remove the rule",
		"job/nightyl":  `matches no job: did you mean "job/nightly"?`,
		"job/deep/*":   "applies to no job",
		"close-dya":    `matches no wrapped function: did you mean "close-day"?`,
		"tpoic/orders": "matches no wrapped function: ",
	} {
		problems := checkShared(t, sharedFile+"- {func: "+rule+", key: k}\n")
		if len(problems) != 1 || !strings.Contains(problems[0], want) {
			t.Errorf("%s: got %q, want %q", rule, problems, want)
		}
	}
}

func TestAdapter_PrefixUnderARuleForAllFunctions(t *testing.T) {
	t.Parallel()
	file := strings.Replace(sharedFile, "topic/*", `"*"`, 1)
	if problems := checkShared(t, file); len(problems) > 0 {
		t.Errorf("got %q", problems)
	}
}

func TestAdapter_Noun(t *testing.T) {
	t.Parallel()
	problems := checkShared(t, "uncovered: error\n"+sharedFile)
	if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, "the job may modify data") }) {
		t.Errorf("got %q", problems)
	}
}

// A name belongs to the adapter with the longest matching prefix.
func TestAdapter_PrefixWithinAnother(t *testing.T) {
	t.Parallel()
	set, err := ruleset.Load("locks.yaml", []byte("rules:\n- {func: topic/orders, key: a}\n- {func: topic/eu/orders, key: b}\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := mustAspect(t, newBench(t).locks)
	for _, prefix := range []string{"topic/eu/", "topic/"} {
		r := aspect.NewRegistry(a, rename(a, prefix, "topic"))
		if _, err := r.Table(set); err != nil {
			t.Fatal(err)
		}
		if err := r.Check("orders").Err(); err != nil {
			t.Errorf("%s: %v", prefix, err)
		}
	}
}
