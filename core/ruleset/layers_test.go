package ruleset_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// overCode loads a file over one rule of the program, which is for POST /a.
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

// TestLoad_WhatAHigherLayerMakesUselessIsNoMistake: nobody could follow the advice to
// remove it.
func TestLoad_WhatAHigherLayerMakesUselessIsNoMistake(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, c := range map[string]struct {
		entry string
		lower ruleset.Rule
	}{
		"fallback":                  {"on_busy: error", ruleset.Rule{OnBusy: failpolicy.Fallback, Fallback: "q"}},
		"fallback of a profile":     {"profile: plain", ruleset.Rule{Profile: "queue", Fallback: "q"}},
		"response":                  {"on_busy: error", ruleset.Rule{OnBusy: failpolicy.NullResponse, Response: "1"}},
		"max_waiters, nobody waits": {"wait_time: none", ruleset.Rule{MaxWaiters: 3}},
		"max_waiters of a debounce": {"debounce: 5s", ruleset.Rule{MaxWaiters: 3}},
		"on_overload":               {"wait_time: none", ruleset.Rule{OnOverload: failpolicy.Skip}},
		"on_overload of a debounce": {"profile: quiet", ruleset.Rule{OnOverload: failpolicy.Skip}},
		"wait_time":                 {"debounce: 5s", ruleset.Rule{WaitTime: second}},
		"lease_time":                {"debounce: 5s", ruleset.Rule{LeaseTime: second}},
		"on_busy":                   {"debounce: 5s", ruleset.Rule{OnBusy: failpolicy.Proceed}},
		"waits, of a profile":       {"profile: quiet", ruleset.Rule{WaitTime: second, LeaseTime: second, OnBusy: failpolicy.Proceed}},
	} {
		text := "profiles:\n  plain: {wait_time: 1s}\n  queue: {on_busy: fallback}\n  quiet: {debounce: 5s}\nrules:\n- http: POST /a\n  " + c.entry + "\n"
		r, err := overCode(t, text, c.lower)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Debounce > 0 && (r.WaitTime != ruleset.NoWait || r.LeaseTime != ruleset.Watchdog || r.OnBusy != failpolicy.Error) {
			t.Errorf("%s: got %v, %v, %v inside of a debounce", name, r.WaitTime, r.LeaseTime, r.OnBusy)
		}
	}
}

func TestLoad_DebounceIsTheSourceOfWhatItReplaces(t *testing.T) {
	t.Parallel()
	r, err := overCode(t, "rules:\n- http: POST /a\n  debounce: 5s\n", ruleset.Rule{WaitTime: time.Second, LeaseTime: time.Second, OnBusy: failpolicy.Proceed})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"wait_time", "lease_time", "on_busy"} {
		if got := r.Source(field).String(); got != "locks.yaml:3:13" {
			t.Errorf("%s comes from %s", field, got)
		}
	}
}

// TestLoad_ConflictsAreInTheHigherLayer: what contradicts a lower layer is a mistake
// where it was written, and the message tells what it contradicts.
func TestLoad_ConflictsAreInTheHigherLayer(t *testing.T) {
	t.Parallel()
	const debounced = " (debounce comes from the program)"
	for _, c := range []struct {
		entry string
		lower ruleset.Rule
		want  string
	}{
		{"wait_time: 5s", ruleset.Rule{Debounce: time.Second}, "6:14: rule of http POST /a: wait_time: a debounced call never waits: remove wait_time" + debounced},
		{"lease_time: 5s", ruleset.Rule{Debounce: time.Second}, "6:15: rule of http POST /a: lease_time: the watchdog holds the lock of a debounced handler, and the window begins after it: remove lease_time" + debounced},
		{"on_busy: proceed", ruleset.Rule{Debounce: time.Second}, "6:12: rule of http POST /a: on_busy: proceeding inside the window undoes debounce: write another strategy" + debounced},
		{"max_waiters: 5", ruleset.Rule{Debounce: time.Second}, "6:16: rule of http POST /a: max_waiters: no call waits under this rule: remove it" + debounced},
		{"max_waiters: 5", ruleset.Rule{WaitTime: ruleset.NoWait}, "6:16: rule of http POST /a: max_waiters: no call waits under this rule: remove it (wait_time comes from the program)"},
		{"on_overload: skip", ruleset.Rule{WaitTime: ruleset.NoWait}, "6:16: rule of http POST /a: on_overload: no call waits under this rule, so it never has an overload: remove it (wait_time comes from the program)"},
		{"fallback: q", ruleset.Rule{OnBusy: failpolicy.Skip}, `6:13: rule of http POST /a: fallback: "q" is never used: write on_busy: fallback, or remove it`},
		{"response: '1'", ruleset.Rule{OnBusy: failpolicy.Skip}, "6:13: rule of http POST /a: response: never used: write on_busy: null_response, or remove it"},
		{"on_busy: fallback", ruleset.Rule{}, `6:12: rule of http POST /a: on_busy: the strategy needs the name of a handler: write fallback: "name"`},
		{"profile: plain", ruleset.Rule{Profile: "named", OnBusy: failpolicy.Fallback}, `6:12: rule of http POST /a: profile: does not name the handler that on_busy of the program needs: write fallback: "name"`},
		{"kind: fenced", ruleset.Rule{Keys: []string{"a", "b"}}, "6:9: rule of http POST /a: kind: a fenced lock has one key, and keys has 2 templates: write one template, or kind: reentrant (keys comes from the program)"},
		{"keys: [a, b]", ruleset.Rule{Key: "a", Kind: ruleset.Spin}, "6:9: rule of http POST /a: keys: a spin lock has one key, and keys has 2 templates: write one template, or kind: reentrant (kind comes from the program)"},
		{"key: b", ruleset.Rule{None: true}, "6:8: rule of http POST /a: key: the program says that the endpoint needs no lock: write none: false, too, to lock it after all"},
	} {
		text := "profiles:\n  plain: {wait_time: 1s}\n  named: {fallback: q}\nrules:\n- http: POST /a\n  " + c.entry + "\n"
		_, err := overCode(t, text, c.lower)
		if err == nil || err.Error() != "ruleset: locks.yaml:"+c.want {
			t.Errorf("%s: got %v, want %s", c.entry, err, c.want)
		}
	}
}

// TestLoad_MistakesOfTheProgramAreItsOwn: they are told in its words, whatever a file
// says of the rule.
func TestLoad_MistakesOfTheProgramAreItsOwn(t *testing.T) {
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
		{ruleset.Rule{Kind: ruleset.Semaphore}, `Kind: a semaphore has to know how many calls may run at once, across all instances: write Permits: 5 beside it`},
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

// TestLoad_NoneCanBeTakenBack: a file locks what the program says needs no lock.
func TestLoad_NoneCanBeTakenBack(t *testing.T) {
	t.Parallel()
	r, err := overCode(t, "rules:\n- http: POST /a\n  none: false\n  key: b\n", ruleset.Rule{None: true})
	if err != nil || r.None || r.Key != "b" {
		t.Errorf("got %+v, %v", r, err)
	}
}
