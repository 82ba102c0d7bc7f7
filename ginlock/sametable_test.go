package ginlock_test

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// sameRule is a rule in Go and in YAML. Both are for POST /pay and have payTemplate as
// their key unless they say something else.
type sameRule struct {
	field   string // the one that it is about
	rule    ruleset.Rule
	yaml    []string
	without func(r *ruleset.Rule) // takes the field away, so that the answers differ; nil: makes it zero
	same    bool                  // the field has only one value that does anything
}

const payTemplate = "order:#{query.id}"

var briefFail = ruleset.Rule{LeaseTime: time.Second, OnLost: failpolicy.Fail}

var sameRules = []sameRule{
	{
		field: "endpoint", rule: ruleset.Rule{Endpoint: ruleset.HTTP("* /*")}, yaml: []string{`http: "* /*"`},
		without: func(r *ruleset.Rule) { r.Endpoint = ruleset.HTTP("POST /elsewhere") },
	},
	{field: "name", rule: ruleset.Rule{Name: "pay-order"}, yaml: []string{"name: pay-order"}},
	{
		field: "key", rule: ruleset.Rule{Key: "pay:#{query.id}"}, yaml: []string{`key: "pay:#{query.id}"`},
		without: func(r *ruleset.Rule) { r.Key = payTemplate },
	},
	{
		field: "keys", rule: ruleset.Rule{Keys: []string{payTemplate, "till"}}, yaml: []string{`keys: ["order:#{query.id}", till]`},
		without: func(r *ruleset.Rule) { r.Keys = []string{"till"} },
	},
	{field: "kind", rule: ruleset.Rule{Kind: ruleset.Reentrant}, yaml: []string{"kind: reentrant"}, same: true},
	{field: "kind", rule: ruleset.Rule{Kind: ruleset.Fenced}, yaml: []string{"kind: fenced"}},
	{field: "kind", rule: ruleset.Rule{Kind: ruleset.Spin}, yaml: []string{"kind: spin"}, same: true}, // a client sees no difference
	{field: "kind", rule: ruleset.Rule{Kind: ruleset.Fair}, yaml: []string{"kind: fair"}, same: true}, // likewise
	{field: "kind", rule: ruleset.Rule{Kind: ruleset.Read}, yaml: []string{"kind: read"}, same: true}, // beside plain locks
	{field: "kind", rule: ruleset.Rule{Kind: ruleset.Write}, yaml: []string{"kind: write"}, same: true},
	{
		field: "permits", rule: ruleset.Rule{Kind: ruleset.Semaphore, Permits: 3}, yaml: []string{"kind: semaphore", "permits: 3"},
		without: func(r *ruleset.Rule) { r.Permits = 1 }, same: true, // one call after the other
	},
	{field: "token", rule: ruleset.Rule{Token: true}, yaml: []string{"token: true"}},
	{field: "wait_time", rule: ruleset.Rule{WaitTime: 2500 * time.Millisecond}, yaml: []string{"wait_time: 2500ms"}},
	{field: "wait_time", rule: ruleset.Rule{WaitTime: ruleset.NoWait}, yaml: []string{"wait_time: none"}},
	{field: "wait_time", rule: ruleset.Rule{WaitTime: ruleset.WaitForever}, yaml: []string{"wait_time: forever"}},
	{field: "lease_time", rule: ruleset.Rule{LeaseTime: 5 * time.Second}, yaml: []string{"lease_time: 5s"}},
	{
		field: "lease_time", rule: ruleset.Rule{LeaseTime: ruleset.Watchdog, Profile: "quick"},
		yaml: []string{"lease_time: watchdog", "profile: quick"},
	},
	{field: "on_busy", rule: ruleset.Rule{OnBusy: failpolicy.Skip}, yaml: []string{"on_busy: skip"}},
	{field: "on_busy", rule: ruleset.Rule{OnBusy: failpolicy.NullResponse}, yaml: []string{"on_busy: null_response"}},
	{field: "on_busy", rule: ruleset.Rule{OnBusy: failpolicy.Proceed}, yaml: []string{"on_busy: proceed"}},
	{field: "on_busy", rule: ruleset.Rule{OnBusy: failpolicy.Error}, yaml: []string{"on_busy: error"}, same: true},
	{field: "on_backend", rule: ruleset.Rule{OnBackend: failpolicy.Skip}, yaml: []string{"on_backend: skip"}},
	{field: "on_key", rule: ruleset.Rule{OnKey: failpolicy.Proceed}, yaml: []string{"on_key: proceed"}},
	{field: "on_overload", rule: ruleset.Rule{OnOverload: failpolicy.Skip, MaxWaiters: 1}, yaml: []string{"on_overload: skip", "max_waiters: 1"}},
	{field: "on_lost", rule: briefFail, yaml: []string{"lease_time: 1s", "on_lost: fail"}},
	{
		field: "on_lost", rule: ruleset.Rule{LeaseTime: time.Second, OnLost: failpolicy.Ignore},
		yaml: []string{"lease_time: 1s", "on_lost: ignore"},
	},
	{
		field: "fallback", rule: ruleset.Rule{OnBusy: failpolicy.Fallback, Fallback: "queue"},
		yaml:    []string{"on_busy: fallback", "fallback: queue"},
		without: func(r *ruleset.Rule) { r.Fallback = "later" },
	},
	{field: "when", rule: ruleset.Rule{When: `query.id != "42"`}, yaml: []string{`when: query.id != "42"`}},
	{field: "debounce", rule: ruleset.Rule{Debounce: 5 * time.Second}, yaml: []string{"debounce: 5s"}},
	{field: "max_waiters", rule: ruleset.Rule{MaxWaiters: 1}, yaml: []string{"max_waiters: 1"}},
	status("busy", failpolicy.Statuses{Busy: failpolicy.Status{HTTP: 423}}, ruleset.Rule{}),
	status("debounced", failpolicy.Statuses{Debounced: failpolicy.Status{HTTP: 423}}, ruleset.Rule{Debounce: time.Second}, "debounce: 1s"),
	status("backend", failpolicy.Statuses{Backend: failpolicy.Status{HTTP: 423}}, ruleset.Rule{}),
	status("key", failpolicy.Statuses{Key: failpolicy.Status{HTTP: 423}}, ruleset.Rule{}),
	status("overload", failpolicy.Statuses{Overload: failpolicy.Status{HTTP: 423}}, ruleset.Rule{MaxWaiters: 1}, "max_waiters: 1"),
	status("lost", failpolicy.Statuses{Lost: failpolicy.Status{HTTP: 423}}, briefFail, "lease_time: 1s", "on_lost: fail"),
	status("deadline", failpolicy.Statuses{Deadline: failpolicy.Status{HTTP: 423}}, ruleset.Rule{}),
	{
		field: "response", rule: ruleset.Rule{OnBusy: failpolicy.NullResponse, Response: `{"queued": true}`},
		yaml: []string{"on_busy: null_response", `response: '{"queued": true}'`},
	},
	{field: "message", rule: ruleset.Rule{Message: "The order is being paid."}, yaml: []string{"message: The order is being paid."}},
	{field: "prefix", rule: ruleset.Rule{Prefix: "eu:"}, yaml: []string{`prefix: "eu:"`}},
	{field: "key_format", rule: ruleset.Rule{KeyFormat: ruleset.Strict}, yaml: []string{"key_format: strict"}},
	{field: "key_format", rule: ruleset.Rule{KeyFormat: ruleset.Encode}, yaml: []string{"key_format: encode"}, same: true},
	{field: "profile", rule: ruleset.Rule{Profile: "quick"}, yaml: []string{"profile: quick"}},
	{field: "disabled", rule: ruleset.Rule{Disabled: true}, yaml: []string{"disabled: true"}},
	{field: "dry_run", rule: ruleset.Rule{DryRun: true}, yaml: []string{"dry_run: true"}},
	{
		field: "none", rule: ruleset.Rule{None: true}, yaml: []string{"none: true"},
		without: func(r *ruleset.Rule) { *r = ruleset.Rule{Endpoint: r.Endpoint, Key: payTemplate} },
	},
}

// status is a rule that answers one cause with 423.
func status(cause string, statuses failpolicy.Statuses, rule ruleset.Rule, yaml ...string) sameRule {
	rule.Status = statuses
	return sameRule{field: "status", rule: rule, yaml: append(yaml, "status: {"+cause+": {http: 423}}")}
}

func (r sameRule) goRule() ruleset.Rule {
	rule := r.rule
	if rule.Endpoint.IsZero() {
		rule.Endpoint = ruleset.Route(http.MethodPost, "/pay")
	}
	if rule.Key == "" && rule.Keys == nil && !rule.None {
		rule.Key = payTemplate
	}
	return rule
}

func (r sameRule) file() string {
	lines := slices.Clone(r.yaml)
	if r.rule.Endpoint.IsZero() {
		lines = append(lines, "http: POST /pay")
	}
	if r.rule.Key == "" && r.rule.Keys == nil && !r.rule.None {
		lines = append(lines, `key: "`+payTemplate+`"`)
	}
	return "rules:\n  - " + strings.Join(lines, "\n    ") + "\n"
}

// plain is the rule without its field.
func (r sameRule) plain() ruleset.Rule {
	rule := r.goRule()
	if r.without != nil {
		r.without(&rule)
		return rule
	}
	clearField(&rule, r.field)
	return rule
}
