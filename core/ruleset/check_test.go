package ruleset_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
	"github.com/interlock-go/interlock/failpolicy"
)

// valid returns a rule without problems. Each test breaks one field of it.
func valid() ruleset.Rule {
	return ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Name: "pay", Key: "order:#{path.id}"}
}

// TestNewSet_EveryProblem covers more mistakes, with their messages.
func TestNewSet_OneMistake(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		field string
		spoil func(r *ruleset.Rule)
	}{
		"blank name":             {"name", func(r *ruleset.Rule) { r.Name = " " }},
		"long name":              {"name", func(r *ruleset.Rule) { r.Name = strings.Repeat("x", 101) }},
		"newline in name":        {"name", func(r *ruleset.Rule) { r.Name = "pay\norder" }},
		"name, no text":          {"name", func(r *ruleset.Rule) { r.Name = "pay\xff" }},
		"message, no text":       {"message", func(r *ruleset.Rule) { r.Message = "busy\xff" }},
		"blank key":              {"key", func(r *ruleset.Rule) { r.Key = "\t" }},
		"too many keys":          {"keys", func(r *ruleset.Rule) { r.Key, r.Keys = "", numbered(101) }},
		"blank condition":        {"when", func(r *ruleset.Rule) { r.When = " " }},
		"permits of a spin lock": {"permits", func(r *ruleset.Rule) { r.Kind, r.Permits = ruleset.Spin, 1 }},
		"huge permits":           {"permits", func(r *ruleset.Rule) { r.Kind, r.Permits = ruleset.Semaphore, math.MaxInt32+1 }},
		"token of a reader":      {"token", func(r *ruleset.Rule) { r.Kind, r.Token = ruleset.Read, true }},
		"debounced semaphore":    {"debounce", func(r *ruleset.Rule) { r.Kind, r.Permits, r.Debounce = ruleset.Semaphore, 1, time.Second }},
		"token of several keys":  {"token", func(r *ruleset.Rule) { r.Key, r.Keys, r.Token = "", []string{"a", "b"}, true }},
		"newline in prefix":      {"prefix", func(r *ruleset.Rule) { r.Prefix = "a\n" }},
	} {
		rule := valid()
		tc.spoil(&rule)
		_, err := ruleset.NewSet([]ruleset.Rule{rule})
		invalid, ok := errors.AsType[*ruleset.InvalidError](err)
		if !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Field != tc.field {
			t.Errorf("%s: got %v, want one problem at %s", name, err, tc.field)
			continue
		}
		p := invalid.Problems[0]
		if !errors.Is(err, p) || p.Source.Layer != ruleset.LayerCode {
			t.Errorf("%s: got %+v", name, p)
		}
	}
}

func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = strings.Repeat("k", i+1)
	}
	return keys
}

// on gives a rule a separate endpoint, so that it does not conflict with other rules.
func on(name string, r ruleset.Rule) ruleset.Rule {
	r.Endpoint, r.Name = ruleset.Route("POST", "/"+name), name
	return r
}

func TestNewSet_EveryProblem(t *testing.T) {
	t.Parallel()
	_, err := ruleset.NewSet([]ruleset.Rule{
		{Key: "a"},
		{Endpoint: ruleset.HTTP("/orders"), Key: "a"},
		{Endpoint: ruleset.HTTP("post /orders"), Key: "a"},
		{Endpoint: ruleset.HTTP("POST orders"), Key: "a"},
		{Endpoint: ruleset.HTTP("POST /a/*/b"), Key: "a"},
		{Endpoint: ruleset.GRPC("shop.Orders/Pay"), Key: "a"},
		{Endpoint: ruleset.GRPC("/shop.Orders"), Key: "a"},
		{Endpoint: ruleset.Func(""), Name: "nameless", Key: "a"},
		{Endpoint: ruleset.Endpoint{Transport: "htp", Path: "/x"}, Key: "a"},
		on("no-key", ruleset.Rule{}),
		on("both-keys", ruleset.Rule{Key: "a", Keys: []string{"b"}}),
		on("empty-keys", ruleset.Rule{Keys: []string{}}),
		on("odd-keys", ruleset.Rule{Keys: []string{"a", " ", "a"}}),
		on("kind", ruleset.Rule{Key: "a", Kind: "fiar"}),
		on("kind-of-redisson", ruleset.Rule{Key: "a", Kind: "RFencedLock"}),
		on("kind-of-one-key", ruleset.Rule{Keys: []string{"a", "b"}, Kind: ruleset.Spin}),
		on("bare-number", ruleset.Rule{Key: "a", WaitTime: 10, LeaseTime: 30}),
		on("bare-milliseconds", ruleset.Rule{Key: "a", WaitTime: 3000, LeaseTime: 300000}),
		on("negative", ruleset.Rule{Key: "a", WaitTime: -time.Second, LeaseTime: -time.Second, MaxHold: -time.Second, Debounce: -time.Second, MaxWaiters: -1}),
		on("swapped", ruleset.Rule{Key: "a", WaitTime: ruleset.Watchdog, LeaseTime: ruleset.NoWait, MaxHold: ruleset.WaitForever, Debounce: ruleset.WaitForever}),
		on("huge", ruleset.Rule{Key: "a", WaitTime: ruleset.MaxDuration + 1, LeaseTime: ruleset.MaxDuration + 1, MaxHold: ruleset.MaxDuration + 1, Debounce: ruleset.MaxDuration + 1}),
		on("java", ruleset.Rule{Key: "a", OnBusy: "EXCEPTION", OnBackend: "RETURN_NULL", OnKey: "CONTINUE", OnOverload: "NO_OPERATION", OnLost: "FAIL_FAST"}),
		on("typo", ruleset.Rule{Key: "a", OnBusy: "fallbak", OnLost: "ignored", KeyFormat: "strickt", Profile: "hevy"}),
		on("no-fallback-name", ruleset.Rule{Key: "a", OnBusy: failpolicy.Fallback, OnKey: failpolicy.Fallback}),
		on("unused-fallback", ruleset.Rule{Key: "a", Fallback: "queue"}),
		on("unused-response", ruleset.Rule{Key: "a", Response: `{"status":"pending"}`}),
		on("bad-response", ruleset.Rule{Key: "a", OnBusy: failpolicy.NullResponse, Response: "{status: pending}"}),
		on("debounce-lease", ruleset.Rule{Key: "a", Debounce: time.Second, LeaseTime: time.Second, WaitTime: time.Second}),
		on("limit-of-a-lease", ruleset.Rule{Key: "a", LeaseTime: time.Second, MaxHold: time.Minute}),
		on("debounce-proceed", ruleset.Rule{Key: "a", Debounce: time.Second, OnBusy: failpolicy.Proceed, MaxWaiters: 3}),
		on("no-call-waits", ruleset.Rule{Key: "a", WaitTime: ruleset.NoWait, MaxWaiters: 3, OnOverload: failpolicy.Skip}),
		on("permits", ruleset.Rule{Key: "a", Permits: 3}),
		on("no-permits", ruleset.Rule{Key: "s1", Kind: ruleset.Semaphore}),
		on("negative-permits", ruleset.Rule{Key: "s2", Kind: ruleset.Semaphore, Permits: -3}),
		on("token-of-many", ruleset.Rule{Key: "s3", Kind: ruleset.Semaphore, Permits: 3, Token: true}),
		on("debounced-reader", ruleset.Rule{Key: "s4", Kind: ruleset.Read, Debounce: time.Second}),
		on("sizes", ruleset.Rule{Key: "s3", Kind: ruleset.Semaphore, Permits: 4}),
		on("status", ruleset.Rule{Key: "a", Status: failpolicy.Statuses{Busy: failpolicy.Status{HTTP: 200}, Key: failpolicy.Status{HTTP: 600, GRPC: 17}}}),
		on("when", ruleset.Rule{Key: "a", When: `#{query.mode == "async"}`}),
		on("prefix", ruleset.Rule{Key: "a", Prefix: "shop:#{path.id}:"}),
		{Endpoint: ruleset.HTTP("GET /named"), Name: "order-#{path.id}", Key: "a"},
		{Endpoint: ruleset.HTTP("GET /twice"), Key: "a"},
		{Endpoint: ruleset.HTTP("GET /twice"), Key: "b"},
		{Endpoint: ruleset.HTTP("GET /half-named"), Key: "a"},
		{Endpoint: ruleset.HTTP("GET /half-named"), Name: "stock", Key: "b"},
	},
		ruleset.WithProfile("default", ruleset.Rule{Key: "shared", OnBackend: "proced"}),
		ruleset.WithProfile("reports", ruleset.Rule{WaitTime: 5, Name: "x"}),
	)
	if _, ok := errors.AsType[*ruleset.InvalidError](err); !ok {
		t.Fatalf("got %v, want an InvalidError", err)
	}
	golden.Assert(t, rulesettest.WithoutLists(err.Error())+"\n", "problems.txt")
}

func TestBuildSet_ProblemsOfFile(t *testing.T) {
	t.Parallel()
	at := func(line int) ruleset.Source {
		return ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: line, Column: 5}
	}
	_, err := ruleset.BuildSet([]ruleset.Declared{
		{
			Rule:   ruleset.Rule{Endpoint: ruleset.HTTP("POST /a"), Key: "a", WaitTime: 10, LeaseTime: ruleset.NoWait, Fallback: "queue"},
			Source: at(2),
			Fields: map[string]ruleset.Source{"wait_time": at(4), "lease_time": at(5), "fallback": at(6)},
		},
		{
			Rule:   ruleset.Rule{Endpoint: ruleset.HTTP("POST /b"), Key: "b"},
			Source: at(8),
			Fields: map[string]ruleset.Source{"wait_time": at(9), "on_busy": at(10)},
		},
		{Rule: ruleset.Rule{Endpoint: ruleset.HTTP("POST /b"), Key: "c"}, Source: at(12)},
	})
	if err == nil {
		t.Fatal("got no error")
	}
	golden.Assert(t, err.Error()+"\n", "problems_yaml.txt")
}

func TestNewSet_ValidRules(t *testing.T) {
	t.Parallel()
	rules := []ruleset.Rule{
		on("minimal", ruleset.Rule{Key: "a"}),
		on("sentinels", ruleset.Rule{Key: "a", WaitTime: ruleset.NoWait, LeaseTime: ruleset.Watchdog}),
		on("forever", ruleset.Rule{Key: "a", WaitTime: ruleset.WaitForever, LeaseTime: time.Millisecond}),
		on("bounds", ruleset.Rule{Key: "a", WaitTime: time.Millisecond, LeaseTime: ruleset.MaxDuration}),
		on("limit", ruleset.Rule{Key: "a", LeaseTime: ruleset.Watchdog, MaxHold: ruleset.MaxDuration}),
		on("debounce", ruleset.Rule{Key: "a", Debounce: 5 * time.Second, WaitTime: ruleset.NoWait, LeaseTime: ruleset.Watchdog}),
		on("fallback", ruleset.Rule{Key: "a", OnBackend: failpolicy.Fallback, Fallback: "queue"}),
		on("null", ruleset.Rule{Key: "a", OnBusy: failpolicy.NullResponse, Response: `{"status":"pending"}`}),
		on("status", ruleset.Rule{Key: "a", Status: failpolicy.Statuses{Busy: failpolicy.Status{HTTP: 423, GRPC: 9 /* FAILED_PRECONDITION */}}}),
		on("fenced", ruleset.Rule{Key: "fenced", Kind: ruleset.Fenced, Debounce: 5 * time.Second}),
		on("spin", ruleset.Rule{Keys: []string{"spin"}, Kind: ruleset.Spin, DryRun: true}),
		on("rest", ruleset.Rule{
			Key: "a", Kind: ruleset.Reentrant, When: "true", MaxWaiters: 10, Message: "wait", Prefix: "shop:",
			KeyFormat: ruleset.Strict, Disabled: true, DryRun: true, OnLost: failpolicy.Ignore,
		}),
		{Endpoint: ruleset.HTTP("*"), Key: "a"},
		{Endpoint: ruleset.HTTP("* /api/*"), Key: "a"},
		{Endpoint: ruleset.HTTP("GET /files/*path"), Key: "a"},
		{Endpoint: ruleset.GRPC("*"), Key: "a"},
		{Endpoint: ruleset.GRPC("/shop.Orders/*"), Key: "a"},
		{Endpoint: ruleset.Func("close-day"), Key: "a"},
	}
	for _, profile := range ruleset.Profiles() {
		rules = append(rules, on("profile-"+profile, ruleset.Rule{Key: "a", Profile: profile}))
	}
	set, err := ruleset.NewSet(rules)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Rules()) != len(rules) {
		t.Errorf("got %d rules, want %d", len(set.Rules()), len(rules))
	}
}

// The shortest and the longest time are accepted, and times beyond them are refused.
func TestNewSet_BoundsOfTimes(t *testing.T) {
	t.Parallel()
	for field, rule := range map[string]func(d time.Duration) ruleset.Rule{
		"WaitTime":  func(d time.Duration) ruleset.Rule { return ruleset.Rule{WaitTime: d} },
		"LeaseTime": func(d time.Duration) ruleset.Rule { return ruleset.Rule{LeaseTime: d} },
		"Debounce":  func(d time.Duration) ruleset.Rule { return ruleset.Rule{Debounce: d} },
	} {
		for d, want := range map[time.Duration]string{
			-time.Nanosecond:                   "-1ns is out of range: write 1ms to 87600h",
			time.Nanosecond:                    "1ns is out of range: write 1ms to 87600h",
			time.Millisecond - time.Nanosecond: "999.999µs is out of range: write 1ms to 87600h",
			time.Millisecond:                   "",
			time.Millisecond + time.Nanosecond: "",
			ruleset.MaxDuration:                "",
			ruleset.MaxDuration + 1:            "87600h0m0.000000001s is out of range: write 1ms to 87600h",
			-ruleset.MaxDuration:               "-87600h is out of range: write 1ms to 87600h",
		} {
			r := rule(d)
			r.Endpoint, r.Key = ruleset.Func("task"), "a"
			_, err := ruleset.NewSet([]ruleset.Rule{r})
			if want == "" && err != nil {
				t.Errorf("%s of %s: got %v", field, d, err)
			} else if want != "" {
				wantOnlyProblem(t, err, field+": "+want)
			}
		}
	}
}

// A file can lock an endpoint for which the program declares None.
func TestLoad_NoneRevoked(t *testing.T) {
	t.Parallel()
	r, err := overCode(t, "rules:\n- http: POST /a\n  none: false\n  key: b\n", ruleset.Rule{None: true})
	if err != nil || r.None || r.Key != "b" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A mistake in a rule of the program is reported with the names of Go, although a file changes the rule.
func TestLoad_MistakesOfProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lower ruleset.Rule
		want  string
	}{
		{ruleset.Rule{Fallback: "q"}, `Fallback: "q" is never used: write OnBusy: failpolicy.Fallback, or remove it`},
		{ruleset.Rule{Response: "1"}, `Response: never used: write OnBusy: failpolicy.NullResponse, or remove it`},
		{ruleset.Rule{OnBusy: failpolicy.Fallback}, `OnBusy: the strategy needs the name of a handler: write Fallback: "name"`},
		{ruleset.Rule{Debounce: time.Second, WaitTime: time.Second}, "WaitTime: a debounced call never waits: remove WaitTime or Debounce"},
		{ruleset.Rule{LeaseTime: 30}, "LeaseTime: 30ns is out of range: write 1ms to 87600h, or ruleset.Watchdog (is a unit missing? 30*time.Second)"},
		{ruleset.Rule{Permits: 3}, `Permits: a reentrant lock has no permits: remove it, or write Kind: ruleset.Semaphore`},
		{ruleset.Rule{Kind: ruleset.Semaphore}, `Kind: a semaphore needs the number of calls that may run at once, across all instances: add Permits: 5`},
		{ruleset.Rule{Kind: ruleset.Read, Token: true}, `Token: several calls hold a read lock at a time, and one token cannot order them: remove Token, or write another kind, such as ruleset.Write`},
		{ruleset.Rule{Keys: []string{"a", "b"}, Kind: ruleset.Fenced}, "Kind: a fenced lock has one key, and Keys has 2 templates: write one template, or Kind: ruleset.Reentrant"},
		{ruleset.Rule{WaitTime: ruleset.NoWait, MaxWaiters: 3}, "MaxWaiters: no call waits under this rule: remove it"},
	} {
		_, err := overCode(t, "rules:\n- http: POST /a\n  message: later\n", c.lower)
		if err == nil || !strings.HasSuffix(err.Error(), "rule of http POST /a: "+c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// The advice for a condition with #{…} parts is the condition without the markers, or contains no condition
// at all.
func TestBuildSet_ConditionWithParts(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		`#{path.id == "a"}`:            "write `path.id == \"a\"` without #{…}",
		`#{path.id} == #{query.id}`:    `write "path.id == query.id" without #{…}`,
		`#{path.orderId} == "3"`:       "write `path.orderId == \"3\"` without #{…}",
		`#{any(body.items, {# == 3})}`: `write "any(body.items, {# == 3})" without #{…}`,
		`#{path.id == "a"`:             "write `path.id == \"a\"` without #{…}",
		`#{path.id} == #{{}`:           "write it without #{…}",
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			_, err := ruleset.BuildSet([]ruleset.Declared{{Rule: ruleset.Rule{Endpoint: ruleset.HTTP("POST /a"), Key: "a", When: when}}})
			if err == nil || !strings.Contains(err.Error(), "a condition is a bare expression: "+want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
