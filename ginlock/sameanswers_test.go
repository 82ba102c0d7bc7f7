package ginlock_test

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// clearField makes a field of a rule zero, by its name outside Go.
func clearField(r *ruleset.Rule, name string) {
	v := reflect.ValueOf(r).Elem()
	v.Field(slices.Index(ruleset.Fields(), name)).SetZero()
}

func goSet(t testing.TB, rules []ruleset.Rule, opts ...ruleset.Option) *ruleset.Set {
	t.Helper()
	set, err := ruleset.NewSet(rules, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A rule in YAML answers every request as the same rule in Go, and not as one without
// the field.
func TestYAML_AnswersAsGo(t *testing.T) {
	t.Parallel()
	bare := ruleset.Rule{Endpoint: ruleset.Route(http.MethodPost, "/pay"), Key: payTemplate}
	inBare := transcript(t, goSet(t, []ruleset.Rule{bare})) // once for all whose rule is that
	for _, tt := range sameRules {
		t.Run(strings.Join(tt.yaml, ", "), func(t *testing.T) {
			t.Parallel()
			inGo := transcript(t, goSet(t, []ruleset.Rule{tt.goRule()}))
			want(t, "in YAML", transcript(t, yaml(t, tt.file())), inGo)
			plain := inBare
			if rule := tt.plain(); !reflect.DeepEqual(rule, bare) {
				plain = transcript(t, goSet(t, []ruleset.Rule{rule}))
			}
			if (plain == inGo) != tt.same {
				t.Errorf("%s changes nothing: %t, want %t:\n%s", tt.field, plain == inGo, tt.same, plain)
			}
		})
	}
}

// What a file says of all its rules answers as the options that say it in Go.
func TestYAML_FileAnswersAsOptions(t *testing.T) {
	t.Parallel()
	pay := func(r ruleset.Rule) []ruleset.Rule {
		r.Endpoint, r.Key = ruleset.Route("POST", "/pay"), payTemplate
		return []ruleset.Rule{r}
	}
	skip := ruleset.Rule{OnBusy: failpolicy.Skip}
	tests := map[string]struct {
		head, more string
		rules      []ruleset.Rule
		opts       []ruleset.Option
	}{
		"disabled": {head: "disabled: true\n", rules: pay(ruleset.Rule{Disabled: true})},
		"dry run":  {head: "dry_run: true\n", rules: pay(ruleset.Rule{DryRun: true})},
		"defaults": {
			head: "profiles:\n  default: {wait_time: 2s, on_backend: skip}\n", rules: pay(ruleset.Rule{}),
			opts: []ruleset.Option{ruleset.WithDefaults(ruleset.Rule{WaitTime: 2 * time.Second, OnBackend: failpolicy.Skip})},
		},
		"profile": {
			head: "profiles:\n  mine: {on_busy: skip}\n", more: "    profile: mine\n",
			rules: pay(ruleset.Rule{Profile: "mine"}), opts: []ruleset.Option{ruleset.WithProfile("mine", skip)},
		},
		"profile of a built-in name": {
			head: "profiles:\n  quick: {on_busy: skip}\n", more: "    profile: quick\n",
			rules: pay(ruleset.Rule{Profile: "quick"}), opts: []ruleset.Option{ruleset.WithProfile("quick", skip)},
		},
		"another service's": {more: "    services: [mail]\n"},
	}
	plain := "rules:\n  - http: POST /pay\n    key: \"" + payTemplate + "\"\n"
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFile, err := ruleset.Load("locks.yaml", []byte(tt.head+plain+tt.more), ruleset.WithService("shop"))
			if err != nil {
				t.Fatal(err)
			}
			got := transcript(t, inFile)
			want(t, "in YAML", got, transcript(t, goSet(t, tt.rules, tt.opts...)))
			if got == transcript(t, yaml(t, plain)) {
				t.Errorf("it changes nothing:\n%s", got)
			}
		})
	}
	t.Run("our service's", func(t *testing.T) {
		t.Parallel()
		inFile, err := ruleset.Load("locks.yaml", []byte(plain+"    services: [mail, shop]\n"), ruleset.WithService("shop"))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "in YAML", transcript(t, inFile), transcript(t, goSet(t, pay(ruleset.Rule{}))))
	})
}
