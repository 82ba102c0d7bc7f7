package adaptertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// strategies is every strategy for every cause, said in every layer of rules.
func strategies(t *testing.T, a Adapter) {
	for _, l := range layersOf(a) {
		for _, c := range causes() {
			for _, s := range failpolicy.Strategies() {
				if c.cause == failpolicy.Debounced && s == failpolicy.Proceed {
					continue // such a rule is refused: it would undo itself
				}
				t.Run(l.name+"/"+string(c.cause)+"/"+string(s), func(t *testing.T) {
					t.Parallel()
					b := newBench(t, a, c.locks...)
					l.declare(b, b.rule(c.rule(b)), answering(c.cause, s))
					b.start()
					ran := c.provoke(b)
					b.wantStrategy(c.cause, s, ran)
				})
			}
		}
	}
}

// answering is what a rule says that answers a cause by a strategy.
func answering(cause failpolicy.Cause, s failpolicy.Strategy) ruleset.Rule {
	var r ruleset.Rule
	switch cause {
	case failpolicy.Backend:
		r.OnBackend = s
	case failpolicy.Key:
		r.OnKey = s
	case failpolicy.Overload:
		r.OnOverload = s
	default:
		r.OnBusy = s
	}
	if s == failpolicy.Fallback {
		r.Fallback = "queue"
	}
	return r
}

// layer is a place where the strategies of a rule can be said.
type layer struct {
	name    string
	declare func(b *bench, rule, answers ruleset.Rule)
}

func layers() []layer {
	return []layer{
		{"on the endpoint", func(b *bench, rule, answers ruleset.Rule) {
			rule = with(rule, answers)
			rule.Endpoint = ruleset.Endpoint{}
			b.program.InCode = []ruleset.Rule{rule}
		}},
		{"set", func(b *bench, rule, answers ruleset.Rule) { b.set(with(rule, answers)) }},
		{"defaults", func(b *bench, rule, answers ruleset.Rule) { b.set(rule, ruleset.WithProfile("default", answers)) }},
		{"profile", func(b *bench, rule, answers ruleset.Rule) {
			rule.Profile = "shop"
			b.set(rule, ruleset.WithProfile("shop", answers))
		}},
		{"file", func(b *bench, rule, answers ruleset.Rule) { b.program.Set = b.load(with(rule, answers)) }},
		{"wildcard of a file", func(b *bench, rule, answers ruleset.Rule) {
			rule.Endpoint = wildcardOf(rule.Endpoint)
			b.program.Set = b.load(with(rule, answers))
		}},
		{"profile of a file", func(b *bench, rule, answers ruleset.Rule) {
			rule.Profile = "shop"
			b.program.Set = b.loadText("profiles:\n  shop:\n" + fields(answers) + yaml(rule))
		}},
		{"file over set", func(b *bench, rule, answers ruleset.Rule) {
			file := with(ruleset.Rule{Endpoint: rule.Endpoint, Key: rule.Key}, answers)
			rule.OnLost = failpolicy.Ignore
			b.program.Set = b.load(file, ruleset.WithRules(rule))
		}},
	}
}

// declared are the layers of endpoints that have rules by themselves.
func declared() []layer {
	return []layer{
		{"declared", func(b *bench, rule, answers ruleset.Rule) {
			b.program.Declared = []ruleset.Rule{with(rule, answers)}
		}},
		{"file over declared", func(b *bench, rule, answers ruleset.Rule) {
			b.program.Declared = []ruleset.Rule{rule}
			b.program.Set = b.load(with(ruleset.Rule{Endpoint: rule.Endpoint, Key: rule.Key}, answers))
		}},
	}
}

// layersOf are the places that there are for rules of an adapter.
func layersOf(a Adapter) []layer {
	if a.Declares {
		return append(layers(), declared()...)
	}
	return layers()
}

// wildcardOf stands for an endpoint and those beside it.
func wildcardOf(e ruleset.Endpoint) ruleset.Endpoint {
	e.Path = e.Path[:strings.Index(e.Path[1:], "/")+2] + "*"
	return e
}

func (b *bench) set(rule ruleset.Rule, opts ...ruleset.Option) {
	b.t.Helper()
	b.program.Set = b.newSet([]ruleset.Rule{rule}, opts...)
}

// with lays strategies over a rule.
func with(rule, answers ruleset.Rule) ruleset.Rule {
	rule.OnBusy, rule.OnBackend, rule.OnKey, rule.OnOverload = answers.OnBusy, answers.OnBackend, answers.OnKey, answers.OnOverload
	rule.Fallback = answers.Fallback
	return rule
}

// load is a set from a rule file with one rule.
func (b *bench) load(r ruleset.Rule, opts ...ruleset.Option) *ruleset.Set {
	b.t.Helper()
	return b.loadText(yaml(r), opts...)
}

func (b *bench) loadText(text string, opts ...ruleset.Option) *ruleset.Set {
	b.t.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(text), opts...)
	if err != nil {
		b.t.Fatal(err)
	}
	return set
}

// yaml is a rule file with one rule.
func yaml(r ruleset.Rule) string {
	return fmt.Sprintf("rules:\n  - %s: %q\n%s", r.Endpoint.Transport, r.Endpoint.Label(), fields(r))
}

// fields are the fields of a rule that these tests use, in a rule file.
func fields(r ruleset.Rule) string {
	var text strings.Builder
	for _, field := range []struct{ name, value string }{
		{"key", r.Key},
		{"profile", r.Profile},
		{"on_busy", string(r.OnBusy)},
		{"on_backend", string(r.OnBackend)},
		{"on_key", string(r.OnKey)},
		{"on_overload", string(r.OnOverload)},
		{"fallback", r.Fallback},
		{"on_lost", string(r.OnLost)},
	} {
		if field.value != "" {
			fmt.Fprintf(&text, "    %s: %q\n", field.name, field.value)
		}
	}
	if r.WaitTime == ruleset.NoWait {
		text.WriteString("    wait_time: none\n")
	} else if r.WaitTime > 0 {
		fmt.Fprintf(&text, "    wait_time: %s\n", r.WaitTime)
	}
	if r.Debounce > 0 {
		fmt.Fprintf(&text, "    debounce: %s\n", r.Debounce)
	}
	if r.MaxWaiters > 0 {
		fmt.Fprintf(&text, "    max_waiters: %d\n", r.MaxWaiters)
	}
	return text.String()
}

// provoked is a cause and how a call comes to it.
type provoked struct {
	cause   failpolicy.Cause
	rule    func(b *bench) func(*ruleset.Rule)
	provoke func(b *bench) (ran int32) // how often the handler has run then
	locks   []core.Option
}

func causes() []provoked {
	as := func(change func(*ruleset.Rule)) func(*bench) func(*ruleset.Rule) {
		return func(*bench) func(*ruleset.Rule) { return change }
	}
	return []provoked{
		{failpolicy.Busy, as(func(*ruleset.Rule) {}), func(b *bench) int32 {
			b.redis.Take(prefix+"order:42", time.Hour)
			return 0
		}, nil},
		{failpolicy.Debounced, as(func(r *ruleset.Rule) { r.Debounce, r.WaitTime = time.Hour, 0 }), func(b *bench) int32 {
			b.wantOK(b.call(), "paid", "")
			return 1
		}, nil},
		{failpolicy.Backend, as(func(*ruleset.Rule) {}), func(b *bench) int32 {
			b.redis.Down()
			return 0
		}, []core.Option{core.WithBackendTimeout(50 * time.Millisecond)}}, // it comes to the same, sooner
		{failpolicy.Key, func(b *bench) func(*ruleset.Rule) {
			return func(r *ruleset.Rule) { r.Key = "order:#{" + b.adapter.Tenant + "}" }
		}, func(*bench) int32 { return 0 }, nil},
		{failpolicy.Overload, as(func(r *ruleset.Rule) { r.WaitTime, r.MaxWaiters = time.Hour, 1 }), (*bench).fill, nil},
	}
}

// fill lets one call wait until the test ends.
func (b *bench) fill() int32 {
	b.redis.Take(prefix+"order:42", time.Hour)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.server.Call(b.t.Context(), Call{ID: "42"})
	}()
	b.t.Cleanup(func() { <-done }) // the context of the test has ended by then
	until(b.t, "waiting", func() bool { return b.locks.Stats().Waiters == 1 })
	return 0
}

// wantStrategy calls and compares the answer with what a strategy gives for a cause.
func (b *bench) wantStrategy(cause failpolicy.Cause, s failpolicy.Strategy, ran int32) {
	b.t.Helper()
	call := Call{ID: "42", Tenant: "acme"}
	if cause == failpolicy.Key {
		call.Tenant = ""
	}
	got := b.send(b.t.Context(), call)
	reply, replies := s.Reply()
	switch {
	case replies:
		b.wantOK(got, "", reply.Mark)
	case s == failpolicy.Error:
		b.wantRefused(got, cause)
		if hinted := cause != failpolicy.Key; (got.Retry > 0) != hinted {
			b.t.Errorf("%s: a hint of %v", cause, got.Retry)
		}
	case s == failpolicy.Fallback:
		b.wantOK(got, "queued", "")
		if told := b.cause.Load(); b.queued.Load() != 1 || told != cause {
			b.t.Errorf("the fallback ran %d times and was told %v", b.queued.Load(), told)
		}
	case s == failpolicy.Proceed:
		b.wantOK(got, "paid", "unlocked")
		ran++
	}
	b.wantRan(ran)
}
