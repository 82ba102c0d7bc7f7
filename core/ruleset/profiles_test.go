package ruleset_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

func TestResolved_Profiles(t *testing.T) {
	t.Parallel()
	for profile, want := range map[string][2]time.Duration{
		"quick":  {3 * time.Second, 10 * time.Second},
		"normal": {5 * time.Second, 30 * time.Second},
		"heavy":  {10 * time.Second, 60 * time.Second},
		"long":   {10 * time.Second, ruleset.Watchdog},
	} {
		r := mustSet(t, ruleset.Rule{Endpoint: ruleset.Func("f"), Key: "a", Profile: profile}).Rules()[0]
		if got := [2]time.Duration{r.WaitTime, r.LeaseTime}; got != want {
			t.Errorf("%s: got %v, want %v", profile, got, want)
		}
		if got, want := r.Source("wait_time").String(), "profile "+profile; got != want {
			t.Errorf("got source %q, want %q", got, want)
		}
	}
}

// The message for an unknown profile suggests the nearest profile or lists all profiles.
func TestLoad_UnknownProfile(t *testing.T) {
	t.Parallel()
	many := "profiles:\n"
	for i := range 20 {
		many += fmt.Sprintf("  p%02d: {wait_time: 1s}\n", i)
	}
	const known = "(one of quick, normal, heavy, long)"
	for name, tc := range map[string]struct {
		head, profile, want string
	}{
		"misspelt":           {"", "hevy", `unknown profile "hevy": write "heavy" ` + known},
		"in capitals":        {"", "QUICK", `unknown profile "QUICK": write "quick" ` + known},
		"unknown":            {"", "reports", `unknown profile "reports" ` + known},
		"of the file":        {"profiles: {reports: {wait_time: 1s}}\n", "report", `unknown profile "report": write "reports" (one of quick, normal, heavy, long, reports)`},
		"among many":         {many, "q07", `unknown profile "q07": write "p07" (one of quick, normal, heavy, long, p00, p01, p02, p03, p04, p05, and 14 more)`},
		"the default":        {"", "default", "the default profile applies to every rule: remove the line"},
		"the default, there": {"profiles: {default: {wait_time: 1s}}\n", "default", "the default profile applies to every rule: remove the line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ruleset.Load("locks.yaml", []byte(tc.head+"rules:\n- {func: a, key: a, profile: "+tc.profile+"}\n"))
			wantOnlyProblem(t, err, "rule of func a: profile: "+tc.want)
		})
	}
}

// If the names of some profiles could not be read, an unknown profile may be one of them. So only the
// unreadable name is reported.
func TestLoad_UnreadProfiles(t *testing.T) {
	t.Parallel()
	for profiles, want := range map[string]string{
		"profiles: [reports]":              "locks.yaml:1:11: profiles: a list: write names with values, such as default: {wait_time: 5s}",
		"profiles:":                        "locks.yaml:1:1: profiles: empty: write names with values, such as default: {wait_time: 5s}, or remove the line",
		"profiles: {10: {wait_time: 1s}}":  "locks.yaml:1:12: profiles: 10 is a number, not a name: quote it if it is a name, or part of a value",
		"profiles: {' ': {wait_time: 1s}}": "locks.yaml:1:12: profiles: a profile without a name: write reports: or default:",
		"profiles: {reports: 5s}":          "locks.yaml:1:21: profile reports: \"5s\" is text: write its values, such as wait_time: 5s",
		"profiles: {reports: {wait_time: 1s}, reports: {wait_time: 2s}}": "locks.yaml:1:38: profiles.reports: given twice: remove this one, or the first in line 1",
		"profiles: {Defaults: {wait_time: 1s}, reports: {}}":             "locks.yaml:1:12: profiles: Defaults: write default, the profile that applies to every rule",
	} {
		_, err := ruleset.Load("locks.yaml", []byte(profiles+"\nrules:\n- {func: a, key: a, profile: reports}\n"))
		if strings.Contains(profiles, "' '") {
			wantProblems(t, err, want, `unknown profile "reports"`)
			continue
		}
		wantOnlyProblem(t, err, want)
	}
}

// Values that the program sets for many rules are checked. Their problems name the profile or the defaults.
func TestWithProfile_Wrong(t *testing.T) {
	t.Parallel()
	rule := ruleset.Rule{Endpoint: ruleset.Func("a"), Key: "a"}
	for name, tc := range map[string]struct {
		opt  ruleset.Option
		want string
	}{
		"no name":            {ruleset.WithProfile("", ruleset.Rule{WaitTime: time.Second}), `WithProfile("") has no name: write WithProfile("reports", …)`},
		"nearly default":     {ruleset.WithProfile("defaults", ruleset.Rule{WaitTime: time.Second}), `profile defaults: write WithProfile("default", …), the profile that applies to every rule`},
		"a bare number":      {ruleset.WithProfile("p", ruleset.Rule{WaitTime: 5}), "profile p: WaitTime: 5ns is out of range: write 1ms to 87600h, ruleset.NoWait or ruleset.WaitForever (is a unit missing? 5*time.Second)"},
		"a key":              {ruleset.WithProfile("p", ruleset.Rule{Key: "a"}), "profile p: Key: belongs to a single rule: remove it here"},
		"a profile":          {ruleset.WithProfile("p", ruleset.Rule{Profile: "quick"}), "profile p: Profile: belongs to a single rule: remove it here"},
		"a strategy":         {ruleset.WithProfile("default", ruleset.Rule{OnBusy: "skp"}), "defaults: OnBusy: unknown strategy \"skp\": write failpolicy.Skip"},
		"a name":             {ruleset.WithProfile("default", ruleset.Rule{Name: "a"}), "defaults: Name: belongs to a single rule: remove it here"},
		"no lock in one":     {ruleset.WithProfile("p", ruleset.Rule{None: true}), "profile p: None: belongs to a single rule: remove it here"},
		"an endpoint":        {ruleset.WithProfile("default", ruleset.Rule{Endpoint: ruleset.Func("a")}), "Endpoint: belongs to a single rule: remove it here"},
		"a lease of a field": {ruleset.WithProfile("default", ruleset.Rule{LeaseTime: ruleset.WaitForever}), "defaults: LeaseTime: ruleset.WaitForever belongs to WaitTime: write a time such as 30*time.Second, or ruleset.Watchdog"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ruleset.NewSet([]ruleset.Rule{rule}, tc.opt)
			wantOnlyProblem(t, err, tc.want)
		})
	}
}

// A later profile replaces an earlier or built-in one of the same name.
func TestWithProfile_Replaces(t *testing.T) {
	t.Parallel()
	quick := ruleset.WithProfile("quick", ruleset.Rule{WaitTime: 7 * time.Second})
	for name, tc := range map[string]struct {
		text  string
		opts  []ruleset.Option
		wait  time.Duration
		lease time.Duration
	}{
		"built in":          {"", nil, 3 * time.Second, 10 * time.Second},
		"by the program":    {"", []ruleset.Option{quick}, 7 * time.Second, ruleset.Watchdog},
		"by the file":       {"profiles: {quick: {lease_time: 8s}}\n", nil, ruleset.DefaultWaitTime, 8 * time.Second},
		"by both":           {"profiles: {quick: {lease_time: 8s}}\n", []ruleset.Option{quick}, ruleset.DefaultWaitTime, 8 * time.Second},
		"beside a default":  {"profiles: {default: {wait_time: 9s, lease_time: 9s}}\n", nil, 3 * time.Second, 10 * time.Second},
		"twice, in options": {"", []ruleset.Option{quick, ruleset.WithProfile("quick", ruleset.Rule{LeaseTime: time.Second})}, ruleset.DefaultWaitTime, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := onlyRule(t, tc.text+"rules:\n- {func: a, key: a, profile: quick}\n", tc.opts...)
			if r.WaitTime != tc.wait || r.LeaseTime != tc.lease {
				t.Errorf("got %v, %v, want %v, %v", r.WaitTime, r.LeaseTime, tc.wait, tc.lease)
			}
		})
	}
}
