package ruleset_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// If a higher layer makes a field of a lower layer useless, the field is not reported, because the author of
// the higher layer could not remove it.
func TestLoad_UselessInLowerLayer(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, c := range map[string]struct {
		entry string
		lower ruleset.Rule
	}{
		"fallback":                   {"on_busy: error", ruleset.Rule{OnBusy: failpolicy.Fallback, Fallback: "q"}},
		"fallback of a profile":      {"profile: plain", ruleset.Rule{Profile: "queue", Fallback: "q"}},
		"response":                   {"on_busy: error", ruleset.Rule{OnBusy: failpolicy.NullResponse, Response: "1"}},
		"max_waiters without a wait": {"wait_time: none", ruleset.Rule{MaxWaiters: 3}},
		"max_waiters of a debounce":  {"debounce: 5s", ruleset.Rule{MaxWaiters: 3}},
		"on_overload":                {"wait_time: none", ruleset.Rule{OnOverload: failpolicy.Skip}},
		"on_overload of a debounce":  {"profile: quiet", ruleset.Rule{OnOverload: failpolicy.Skip}},
		"wait_time":                  {"debounce: 5s", ruleset.Rule{WaitTime: second}},
		"lease_time":                 {"debounce: 5s", ruleset.Rule{LeaseTime: second}},
		"max_hold":                   {"lease_time: 5s", ruleset.Rule{MaxHold: second}},
		"max_hold, of a profile":     {"profile: fixed", ruleset.Rule{MaxHold: second}},
		"on_busy":                    {"debounce: 5s", ruleset.Rule{OnBusy: failpolicy.Proceed}},
		"waits, of a profile":        {"profile: quiet", ruleset.Rule{WaitTime: second, LeaseTime: second, OnBusy: failpolicy.Proceed}},
	} {
		text := "profiles:\n  plain: {wait_time: 1s}\n  queue: {on_busy: fallback}\n  quiet: {debounce: 5s}\n  fixed: {lease_time: 5s}\nrules:\n- http: POST /a\n  " + c.entry + "\n"
		r, err := overCode(t, text, c.lower)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Debounce > 0 && (r.WaitTime != ruleset.NoWait || r.LeaseTime != ruleset.Watchdog || r.OnBusy != failpolicy.Error) {
			t.Errorf("%s: got %v, %v, %v with a debounce", name, r.WaitTime, r.LeaseTime, r.OnBusy)
		}
	}
}

func TestLoad_DebounceReplacesLowerLayer(t *testing.T) {
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

func TestResolved_Debounce(t *testing.T) {
	t.Parallel()
	r := mustSet(t, ruleset.Rule{Endpoint: ruleset.Func("f"), Key: "a", Profile: "quick", Debounce: time.Second}).Rules()[0]
	if r.WaitTime != ruleset.NoWait || r.LeaseTime != ruleset.Watchdog {
		t.Errorf("got %v, %v, want NoWait, Watchdog", r.WaitTime, r.LeaseTime)
	}
}

// A field that contradicts a lower layer is reported in its own layer. The message names the contradicted
// field.
func TestLoad_ConflictInHigherLayer(t *testing.T) {
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
		{"max_hold: 5s", ruleset.Rule{LeaseTime: time.Second}, "6:13: rule of http POST /a: max_hold: a fixed lease ends by itself: remove max_hold, or write lease_time: watchdog (lease_time comes from the program)"},
		{"max_hold: 5s", ruleset.Rule{Profile: "quick"}, "6:13: rule of http POST /a: max_hold: a fixed lease ends by itself: remove max_hold, or write lease_time: watchdog (lease_time comes from the program)"},
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

// A value of a lower layer that a higher layer makes useless is not reported. A missing value is reported in
// the layer that needs it.
func TestLoad_PermitsAndTokensOfLayers(t *testing.T) {
	t.Parallel()
	semaphore := ruleset.Rule{Kind: ruleset.Semaphore, Permits: 3}
	for name, tt := range map[string]struct {
		file  string
		lower ruleset.Rule
		want  string // the end of the only problem; "" for none
	}{
		"another number":     {"permits: 10", semaphore, ""},
		"another kind":       {"kind: spin", semaphore, ""},
		"a kind without":     {"kind: semaphore", ruleset.Rule{}, "kind: a semaphore needs the number of calls that may run at once, across all instances: add permits: 5"},
		"permits without":    {"permits: 10", ruleset.Rule{}, "permits: a reentrant lock has no permits: remove it, or write kind: semaphore"},
		"permits over spin":  {"permits: 10", ruleset.Rule{Kind: ruleset.Spin}, "or write kind: semaphore (kind comes from the program)"},
		"a kind for a token": {"kind: read", ruleset.Rule{Token: true}, "kind: several calls hold a read lock at a time, and one token cannot order them: remove token, or write another kind, such as write (token comes from the program)"},
		"no token any more":  {"kind: read\n  token: false", ruleset.Rule{Token: true}, ""},
		"fenced, no token":   {"kind: fenced\n  token: false", ruleset.Rule{}, "token: a fenced lock has a token in any case: remove token, or write another kind, such as reentrant"},
		"no token of fenced": {"token: false", ruleset.Rule{Kind: ruleset.Fenced}, "token: a fenced lock has a token in any case: remove token, or write another kind, such as reentrant (kind comes from the program)"},
		"fenced, a token":    {"kind: fenced\n  token: true", ruleset.Rule{}, ""},
		"fenced over others": {"kind: fenced", ruleset.Rule{Kind: ruleset.Spin}, ""},
		"a token for a kind": {"token: true", semaphore, "token: several calls hold a semaphore at a time, and one token cannot order them: remove token, or write another kind, such as reentrant (kind comes from the program)"},
		"a window":           {"debounce: 5s", semaphore, "has no last holder, so the window would never start: remove debounce, or write another kind, such as reentrant (kind comes from the program)"},
	} {
		_, err := overCode(t, "rules:\n- http: POST /a\n  "+tt.file+"\n", tt.lower)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %s", name, err, tt.want)
		}
	}
}
