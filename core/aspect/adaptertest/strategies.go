package adaptertest

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// strategies tests every strategy for every cause, in every layer of rules.
func strategies(t *testing.T, a Adapter) {
	for _, l := range layersOf(a) {
		for _, c := range causes() {
			for _, s := range failpolicy.Strategies() {
				if c.cause == failpolicy.Debounced && s == failpolicy.Proceed {
					continue // a rule must not say so, because it would undo its debounce
				}
				t.Run(l.name+"/"+string(c.cause)+"/"+string(s), func(t *testing.T) {
					t.Parallel()
					b := newBench(t, a, c.locks...)
					l.declare(b, b.rule(c.rule(b)), answering(c.cause, s))
					b.start()
					ran := c.provoke(b)
					wantStrategy(b, c.cause, s, ran)
				})
			}
		}
	}
}

// answering returns the fields of a rule that answer a cause by a strategy.
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

// layer is a place for the strategies of a rule.
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

// declared returns the layers of endpoints that have rules by themselves.
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

// layersOf returns the layers that the rules of an adapter have.
func layersOf(a Adapter) []layer {
	if a.Declares {
		return append(layers(), declared()...)
	}
	return layers()
}

// with lays strategies over a rule.
func with(rule, answers ruleset.Rule) ruleset.Rule {
	rule.OnBusy, rule.OnBackend, rule.OnKey, rule.OnOverload = answers.OnBusy, answers.OnBackend, answers.OnKey, answers.OnOverload
	rule.Fallback = answers.Fallback
	return rule
}

// provoked is a cause and the way to provoke it.
type provoked struct {
	cause   failpolicy.Cause
	rule    func(b *bench) func(*ruleset.Rule)
	provoke func(b *bench) (ran int32) // returns how often the handler has run
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
		}, []core.Option{core.WithBackendTimeout(50 * time.Millisecond)}}, // so that the outage shows sooner
		{failpolicy.Key, func(b *bench) func(*ruleset.Rule) {
			return func(r *ruleset.Rule) { r.Key = "order:#{" + b.adapter.Tenant + "}" }
		}, func(*bench) int32 { return 0 }, nil},
		{failpolicy.Overload, as(func(r *ruleset.Rule) { r.WaitTime, r.MaxWaiters = time.Hour, 1 }), fillQueue, nil},
	}
}

// fillQueue lets one call wait until the test ends.
func fillQueue(b *bench) int32 {
	b.redis.Take(prefix+"order:42", time.Hour)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.server.Call(b.t.Context(), Call{ID: "42"})
	}()
	b.t.Cleanup(func() { <-done }) // the context of the test ends before its cleanups run
	until(b.t, "a call waits", func() bool { return b.locks.Stats().Waiters == 1 })
	return 0
}

// wantStrategy calls, and compares the answer with the answer that a strategy gives for a cause. ran is how often the
// handler has run before.
func wantStrategy(b *bench, cause failpolicy.Cause, s failpolicy.Strategy, ran int32) {
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
		if seen := b.cause.Load(); b.queued.Load() != 1 || seen != cause {
			b.t.Errorf("the fallback ran %d times and saw cause %v", b.queued.Load(), seen)
		}
	case s == failpolicy.Proceed:
		b.wantOK(got, "paid", "unlocked")
		ran++
	}
	b.wantRan(ran)
}
