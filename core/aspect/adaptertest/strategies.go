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
					continue // a rule must not combine these, because proceed would undo the debounce
				}
				t.Run(l.name+"/"+string(c.cause)+"/"+string(s), func(t *testing.T) {
					t.Parallel()
					b := newBench(t, a, c.locks...)
					l.declare(b, b.rule(c.rule(b)), strategyFor(c.cause, s))
					b.start()
					ran := c.provoke(b)
					wantStrategy(b, c.cause, s, ran)
				})
			}
		}
	}
}

// strategyFor returns the fields of a rule that set the strategy for a cause.
func strategyFor(cause failpolicy.Cause, s failpolicy.Strategy) ruleset.Rule {
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

// layer is a place where the strategies of a rule can be declared.
type layer struct {
	name    string
	declare func(b *bench, rule, answers ruleset.Rule)
}

func layers() []layer {
	return []layer{
		{"on the endpoint", func(b *bench, rule, answers ruleset.Rule) {
			rule = setStrategies(rule, answers)
			rule.Endpoint = ruleset.Endpoint{}
			b.program.InCode = []ruleset.Rule{rule}
		}},
		{"set", func(b *bench, rule, answers ruleset.Rule) { b.set(setStrategies(rule, answers)) }},
		{"defaults", func(b *bench, rule, answers ruleset.Rule) { b.set(rule, ruleset.WithProfile("default", answers)) }},
		{"profile", func(b *bench, rule, answers ruleset.Rule) {
			rule.Profile = "shop"
			b.set(rule, ruleset.WithProfile("shop", answers))
		}},
		{"file", func(b *bench, rule, answers ruleset.Rule) { b.program.Set = b.load(setStrategies(rule, answers)) }},
		{"wildcard of a file", func(b *bench, rule, answers ruleset.Rule) {
			rule.Endpoint = wildcardOf(rule.Endpoint)
			b.program.Set = b.load(setStrategies(rule, answers))
		}},
		{"profile of a file", func(b *bench, rule, answers ruleset.Rule) {
			rule.Profile = "shop"
			b.program.Set = b.loadText("profiles:\n  shop:\n" + formatFields(answers) + formatRuleFile(rule))
		}},
		{"file over set", func(b *bench, rule, answers ruleset.Rule) {
			file := setStrategies(ruleset.Rule{Endpoint: rule.Endpoint, Key: rule.Key}, answers)
			rule.OnLost = failpolicy.Ignore
			b.program.Set = b.load(file, ruleset.WithRules(rule))
		}},
	}
}

// declaredLayers returns the layers of endpoints that declare rules.
func declaredLayers() []layer {
	return []layer{
		{"declared", func(b *bench, rule, answers ruleset.Rule) {
			b.program.Declared = []ruleset.Rule{setStrategies(rule, answers)}
		}},
		{"file over declared", func(b *bench, rule, answers ruleset.Rule) {
			b.program.Declared = []ruleset.Rule{rule}
			b.program.Set = b.load(setStrategies(ruleset.Rule{Endpoint: rule.Endpoint, Key: rule.Key}, answers))
		}},
	}
}

// layersOf returns the layers in which an adapter can have rules.
func layersOf(a Adapter) []layer {
	if a.Declares {
		return append(layers(), declaredLayers()...)
	}
	return layers()
}

// setStrategies returns a rule with the strategies of answers.
func setStrategies(rule, answers ruleset.Rule) ruleset.Rule {
	rule.OnBusy, rule.OnBackend, rule.OnKey, rule.OnOverload = answers.OnBusy, answers.OnBackend, answers.OnKey, answers.OnOverload
	rule.Fallback = answers.Fallback
	return rule
}

// provocation is a cause and the way to provoke it.
type provocation struct {
	cause   failpolicy.Cause
	rule    func(b *bench) func(*ruleset.Rule)
	provoke func(b *bench) (ran int32) // returns how often the handler ran
	locks   []core.Option
}

func causes() []provocation {
	always := func(change func(*ruleset.Rule)) func(*bench) func(*ruleset.Rule) {
		return func(*bench) func(*ruleset.Rule) { return change }
	}
	return []provocation{
		{failpolicy.Busy, always(func(*ruleset.Rule) {}), func(b *bench) int32 {
			b.redis.Take(prefix+"order:42", time.Hour)
			return 0
		}, nil},
		{failpolicy.Debounced, always(func(r *ruleset.Rule) { r.Debounce, r.WaitTime = time.Hour, 0 }), func(b *bench) int32 {
			b.wantOK(b.call(), "paid", "")
			return 1
		}, nil},
		{failpolicy.Backend, always(func(*ruleset.Rule) {}), func(b *bench) int32 {
			b.redis.Down()
			return 0
		}, []core.Option{core.WithBackendTimeout(50 * time.Millisecond)}}, // so that the call fails sooner
		{failpolicy.Key, func(b *bench) func(*ruleset.Rule) {
			return func(r *ruleset.Rule) { r.Key = "order:#{" + b.adapter.Tenant + "}" }
		}, func(*bench) int32 { return 0 }, nil},
		{failpolicy.Overload, always(func(r *ruleset.Rule) { r.WaitTime, r.MaxWaiters = time.Hour, 1 }), fillQueue, nil},
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
	b.t.Cleanup(func() { <-done }) // the context of the test is canceled before its cleanups run
	awaitEvent(b.t, "a call waits", func() bool { return b.locks.Stats().Waiters == 1 })
	return 0
}

// wantStrategy calls the endpoint and checks that the answer is the answer of a strategy for a cause. ran is the number of
// times that the handler ran before.
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
