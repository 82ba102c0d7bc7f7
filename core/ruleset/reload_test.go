package ruleset_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// A reload that changes which calls exclude each other is refused, or listed as an unlocking.
func TestReload_RefusedOrUnlocked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, next string
		refused   string   // the field of the problem; "" if the reload is accepted
		unlocked  []string // the listed unlockings
	}{
		"writers become readers":   {"{func: f, key: k, kind: write}", "{func: f, key: k, kind: read}", "kind", nil},
		"readers become writers":   {"{func: f, key: k, kind: read}", "{func: f, key: k, kind: write}", "kind", nil},
		"another size":             {"{func: f, key: k, kind: semaphore, permits: 1}", "{func: f, key: k, kind: semaphore, permits: 5}", "permits", nil},
		"a condition comes":        {"{func: f, key: k}", "{func: f, key: k, when: in.Big}", "", []string{`func f: when "in.Big"`}},
		"another condition":        {"{func: f, key: k, when: in.Old}", "{func: f, key: k, when: in.Big}", "", []string{`func f: when "in.Big"`}},
		"a condition goes":         {"{func: f, key: k, when: in.Big}", "{func: f, key: k}", "", nil},
		"runs when it is busy":     {"{func: f, key: k}", "{func: f, key: k, on_busy: proceed}", "", []string{"func f: on_busy proceed"}},
		"runs without Redis":       {"{func: f, key: k}", "{func: f, key: k, on_backend: proceed, on_overload: skip}", "", []string{"func f: on_backend proceed"}},
		"runs as it did":           {"{func: f, key: k, on_busy: proceed}", "{func: f, key: k, on_busy: proceed, wait_time: 1s}", "", nil},
		"disabled":                 {"{func: f, key: k}", "{func: f, key: k, disabled: true}", "", []string{"func f: disabled"}},
		"another key and disabled": {"{func: f, key: k}", "{func: f, key: l, disabled: true}", "", []string{"func f: disabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, next := ruleLines(t, tc.old), ruleLines(t, tc.next)
			var fields []string
			for _, p := range refused(old, next) {
				fields = append(fields, p.Field)
			}
			if want := []string{tc.refused}; len(fields) > 0 != (tc.refused != "") || len(fields) > 0 && !slices.Equal(fields, want) {
				t.Errorf("refused for %q, want %q", fields, tc.refused)
			}
			if got := (ruleset.Reload{Old: old, Set: next}).Unlocked(); !slices.Equal(got, tc.unlocked) {
				t.Errorf("listed %q, want %q", got, tc.unlocked)
			}
		})
	}
}

// Unlocked lists the locks that a reload removes, described for a log.
func TestReload_Unlocked(t *testing.T) {
	t.Parallel()
	const (
		pay   = "- {func: pay, key: pay}\n"
		ship  = "- {http: POST /ship, name: ship, key: ship}\n"
		admin = "- {http: POST /admin/*, key: admin}\n"
		all   = "rules:\n" + pay + ship
	)
	for name, tc := range map[string]struct {
		old, next string // empty for the first load
		want      []string
	}{
		"the same":                     {all, all, nil},
		"another key":                  {all, "allow_rekey: true\nrules:\n- {func: pay, key: x}\n" + ship, nil},
		"more":                         {"rules:\n" + pay, all, nil},
		"one is removed":               {all, "rules:\n" + pay, []string{"http POST /ship ship: removed"}},
		"all are removed":              {all, "rules: []\n", []string{"func pay: removed", "http POST /ship ship: removed"}},
		"one is disabled":              {all, "rules:\n- {func: pay, key: pay, disabled: true}\n" + ship, []string{"func pay: disabled"}},
		"one is in a dry run":          {all, "rules:\n- {func: pay, key: pay, dry_run: true}\n" + ship, []string{"func pay: dry_run"}},
		"one needs none":               {all, "rules:\n- {func: pay, none: true}\n" + ship, []string{"func pay: none"}},
		"disabled before":              {"rules:\n- {func: pay, key: pay, disabled: true}\n", "rules: []\n", nil},
		"from a dry run to disabled":   {"rules:\n- {func: pay, key: pay, dry_run: true}\n", "rules:\n- {func: pay, key: pay, disabled: true}\n", nil},
		"locked again":                 {"rules:\n- {func: pay, key: pay, disabled: true}\n", "rules:\n" + pay, nil},
		"renamed":                      {"rules:\n" + pay, "rules:\n- {func: pay, name: till, key: pay}\n", nil},
		"named":                        {"rules:\n- {func: pay, key: pay}\n", "rules:\n- {func: pay, name: till, key: pay}\n", nil},
		"merged":                       {"rules:\n- {func: pay, name: a, key: k}\n- {func: pay, name: b, key: l}\n", "rules:\n- {func: pay, keys: [k, l]}\n", nil},
		"split":                        {"rules:\n- {func: pay, keys: [k, l]}\n", "rules:\n- {func: pay, name: a, key: k}\n- {func: pay, name: b, key: l}\n", nil},
		"one of two":                   {"rules:\n- {func: pay, name: a, key: k}\n- {func: pay, name: b, key: l}\n", "rules:\n- {func: pay, key: k}\n", []string{"func pay b: removed"}},
		"one of two, and names moved":  {"rules:\n- {func: pay, name: a, key: k}\n- {func: pay, name: b, key: l}\n", "rules:\n- {func: pay, name: a, key: l}\n", []string{"func pay a: removed"}},
		"the last step to another key": {"rules:\n- {func: pay, keys: [k, l]}\n", "rules:\n- {func: pay, key: l}\n", nil},
		"renamed, with another key":    {"rules:\n" + pay, "allow_rekey: true\nrules:\n- {func: pay, name: till, key: x}\n", []string{"func pay: removed"}},
		"one of two, other rekeyed":    {"rules:\n- {func: pay, name: a, key: k}\n- {func: pay, name: b, key: l}\n", "allow_rekey: true\nrules:\n- {func: pay, name: b, key: x}\n", []string{"func pay a: removed"}},
		"a condition comes":            {"rules:\n" + pay, "rules:\n- {func: pay, key: pay, when: in.Big}\n", []string{`func pay: when "in.Big"`}},
		"renamed, with a condition":    {"rules:\n" + pay, "rules:\n- {func: pay, name: till, key: pay, when: in.Big}\n", []string{`func pay: when "in.Big"`}},
		"a condition for one of two":   {"rules:\n" + pay, "rules:\n- {func: pay, name: a, key: pay, when: in.Big}\n- {func: pay, name: till, key: pay}\n", nil},

		"none below a wildcard":         {"rules:\n" + admin, "rules:\n" + admin + "- {http: POST /admin/refund, none: true}\n", []string{"http POST /admin/refund: none"}},
		"disabled below a wildcard":     {"rules:\n" + admin, "rules:\n" + admin + "- {http: POST /admin/refund, key: refund, disabled: true}\n", []string{"http POST /admin/refund: disabled"}},
		"dry run below a wildcard":      {"rules:\n" + admin, "rules:\n" + admin + "- {http: POST /admin/refund, key: refund, dry_run: true}\n", []string{"http POST /admin/refund: dry_run"}},
		"none by a longer wildcard":     {"rules:\n" + admin, "rules:\n" + admin + "- {http: '* /admin/x/*', none: true}\n", []string{"http POST /admin/x/*: none"}},
		"none for one method":           {"rules:\n- {http: '* /a', name: a, key: k}\n", "rules:\n- {http: '* /a', name: a, key: k}\n- {http: POST /a, none: true}\n", []string{"http POST /a a: none"}},
		"none for every method but one": {"rules:\n- {http: '* /a', key: k}\n", "rules:\n- {http: '* /a', none: true}\n- {http: POST /a, key: k}\n", []string{"http * /a: none"}},
		"a wildcard gone but for one":   {"rules:\n" + admin, "rules:\n- {http: POST /admin/refund, key: admin}\n", []string{"http POST /admin/*: removed"}},
		"one method in place of any":    {"rules:\n- {http: '* /a', key: k}\n", "rules:\n- {http: POST /a, key: k}\n", []string{"http * /a: removed"}},
		"the same below a wildcard":     {"rules:\n" + admin, "rules:\n" + admin + "- {http: POST /admin/refund, key: admin}\n", nil},
		"widened to a wildcard":         {"rules:\n- {http: POST /admin/refund, key: admin}\n", "rules:\n" + admin, nil},
		"one of two below a wildcard": {
			"rules:\n- {http: POST /a/*, name: a, key: k}\n- {http: POST /a/*, name: b, key: l}\n",
			"rules:\n- {http: POST /a/*, name: a, key: k}\n- {http: POST /a/*, name: b, key: l}\n- {http: POST /a/x, key: k}\n",
			[]string{"http POST /a/x b: removed"},
		},

		"of a lower layer, changed no more":  {"rules:\n- {func: pay, wait_time: 1s}\n", "rules: []\n", nil},
		"of a lower layer, disabled":         {"rules:\n- {func: pay, wait_time: 1s}\n", "rules:\n- {func: pay, disabled: true}\n", []string{"func pay: disabled"}},
		"of a lower layer, disabled only":    {"rules: []\n", "rules:\n- {func: pay, disabled: true}\n", []string{"func pay: disabled"}},
		"of a lower layer, disabled before":  {"rules:\n- {func: pay, disabled: true}\n", "rules:\n- {func: pay, disabled: true, wait_time: 1s}\n", nil},
		"of a lower layer, beside another":   {"rules:\n- {func: pay, name: a, wait_time: 1s}\n- {func: pay, name: b, key: k}\n", "rules:\n- {func: pay, name: a, wait_time: 1s}\n", []string{"func pay b: removed"}},
		"key left to a lower layer":          {"rules:\n" + pay, "rules:\n- {func: pay, wait_time: 1s}\n", nil},
		"of a lower layer, not a wildcard's": {"rules:\n- {func: '*', key: k}\n", "rules:\n- {func: '*', key: k}\n- {func: pay, wait_time: 1s}\n", nil},

		"the whole file":               {all, "disabled: true\n" + all, []string{"the whole file: disabled"}},
		"the whole file, dry run":      {all, "dry_run: true\n" + all, []string{"the whole file: dry_run"}},
		"the whole file, still":        {"dry_run: true\n" + all, "dry_run: true\n" + all, nil},
		"the whole file, and disabled": {"dry_run: true\n" + all, "disabled: true\n" + all, []string{"the whole file: disabled"}},
		"first load":                   {"", all, nil},
		"first load, disabled":         {"", "disabled: true\n" + all, []string{"the whole file: disabled"}},
		"first load, dry run":          {"", "dry_run: true\n" + all, nil},
		"first load, one is disabled":  {"", "rules:\n- {func: pay, key: pay, disabled: true}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ruleset.Reload{Set: mustLoad(t, tc.next)}
			if tc.old != "" {
				r.Old = mustLoad(t, tc.old)
			}
			if got := r.Unlocked(); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			r.Err = errors.New("refused")
			if got := r.Unlocked(); got != nil {
				t.Errorf("a refusal: got %q", got)
			}
		})
	}
	if got := (ruleset.Reload{}).Unlocked(); got != nil {
		t.Errorf("without a set: got %q", got)
	}
}
