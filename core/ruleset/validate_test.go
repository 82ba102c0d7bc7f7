package ruleset_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
	"github.com/interlock-go/interlock/failpolicy"
)

// on gives a rule an endpoint of its own, so that only its own problems show.
func on(name string, r ruleset.Rule) ruleset.Rule {
	r.Endpoint, r.Name = ruleset.Route("POST", "/"+name), name
	return r
}

func TestNewSet_ReportsEveryProblemAtOnce(t *testing.T) {
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
		on("negative", ruleset.Rule{Key: "a", WaitTime: -time.Second, LeaseTime: -time.Second, Debounce: -time.Second, MaxWaiters: -1}),
		on("swapped", ruleset.Rule{Key: "a", WaitTime: ruleset.Watchdog, LeaseTime: ruleset.NoWait, Debounce: ruleset.WaitForever}),
		on("huge", ruleset.Rule{Key: "a", WaitTime: ruleset.MaxDuration + 1, LeaseTime: ruleset.MaxDuration + 1, Debounce: ruleset.MaxDuration + 1}),
		on("java", ruleset.Rule{Key: "a", OnBusy: "EXCEPTION", OnBackend: "RETURN_NULL", OnKey: "CONTINUE", OnOverload: "NO_OPERATION", OnLost: "FAIL_FAST"}),
		on("typo", ruleset.Rule{Key: "a", OnBusy: "fallbak", OnLost: "ignored", KeyFormat: "strickt", Profile: "hevy"}),
		on("no-fallback-name", ruleset.Rule{Key: "a", OnBusy: failpolicy.Fallback, OnKey: failpolicy.Fallback}),
		on("unused-fallback", ruleset.Rule{Key: "a", Fallback: "queue"}),
		on("unused-response", ruleset.Rule{Key: "a", Response: `{"status":"pending"}`}),
		on("bad-response", ruleset.Rule{Key: "a", OnBusy: failpolicy.NullResponse, Response: "{status: pending}"}),
		on("debounce-lease", ruleset.Rule{Key: "a", Debounce: time.Second, LeaseTime: time.Second, WaitTime: time.Second}),
		on("debounce-proceed", ruleset.Rule{Key: "a", Debounce: time.Second, OnBusy: failpolicy.Proceed, MaxWaiters: 3}),
		on("nobody-waits", ruleset.Rule{Key: "a", WaitTime: ruleset.NoWait, MaxWaiters: 3, OnOverload: failpolicy.Skip}),
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

func TestBuildSet_ProblemsNameTheFileAndItsWords(t *testing.T) {
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

func TestNewSet_AcceptsEveryValueOfTheContract(t *testing.T) {
	t.Parallel()
	rules := []ruleset.Rule{
		on("minimal", ruleset.Rule{Key: "a"}),
		on("sentinels", ruleset.Rule{Key: "a", WaitTime: ruleset.NoWait, LeaseTime: ruleset.Watchdog}),
		on("forever", ruleset.Rule{Key: "a", WaitTime: ruleset.WaitForever, LeaseTime: time.Millisecond}),
		on("bounds", ruleset.Rule{Key: "a", WaitTime: time.Millisecond, LeaseTime: ruleset.MaxDuration}),
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

// The shortest and the longest time are in range, and nothing beyond them is.
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

func TestResolve_NeedsNoEndpoint(t *testing.T) {
	t.Parallel()
	rules, err := ruleset.Resolve([]ruleset.Rule{{Key: "a"}})
	if err != nil || len(rules) != 1 {
		t.Fatalf("got %v, %v", rules, err)
	}
	_, err = ruleset.Resolve([]ruleset.Rule{{Key: "a"}, {Key: "b"}})
	if err == nil || !strings.Contains(err.Error(), "give each its own name") {
		t.Errorf("two unnamed rules: got %v", err)
	}
}
