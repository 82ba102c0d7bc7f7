package ruleset_test

import (
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core/ruleset"
)

const oldRules = `
uncovered: warn
profiles:
  default: {wait_time: 5s}
rules:
  - {http: POST /pay, name: pay, key: "order:#{path.id}", wait_time: 10s}
  - {http: POST /ship, key: "ship:1", on_busy: skip}
  - {http: POST /gone, key: gone}
  - {http: POST /kept, key: kept}
  - {http: POST /both, key: old, dry_run: true}
  - {http: POST /renamed, name: before, key: "r:1"}
`

const newRules = `
allow_rekey: true
profiles:
  default: {wait_time: 5s}
rules:
  - {http: POST /new, key: new}
  - {http: POST /pay, name: pay, key: "pay:#{path.id}", lease_time: 30s, max_waiters: 5}
  - {http: POST /ship, key: "ship:1", prefix: "shop:"}

  - {http: POST /kept, key: kept, disabled: false}
  - {http: POST /both, keys: [old, new]}
  - {http: POST /renamed, name: after, key: "r:2"}
`

func TestDiff(t *testing.T) {
	t.Parallel()
	changes := ruleset.Diff(load(t, "old.yaml", oldRules), load(t, "new.yaml", newRules))
	var text strings.Builder
	for _, c := range changes {
		text.WriteString(c.String() + "\n")
	}
	golden.Assert(t, text.String(), "diff.txt")
}

func TestDiff_SameSet(t *testing.T) {
	t.Parallel()
	set := load(t, "old.yaml", oldRules)
	for name, other := range map[string]*ruleset.Set{"itself": set, "moved": load(t, "other.yaml", "\n\n"+oldRules)} {
		if changes := ruleset.Diff(set, other); len(changes) != 0 {
			t.Errorf("%s: got %v", name, changes)
		}
	}
	if changes := ruleset.Diff(nil, nil); len(changes) != 0 {
		t.Errorf("nothing: got %v", changes)
	}
}

func TestDiff_SettingForAllRules(t *testing.T) {
	t.Parallel()
	for setting, place := range map[string]string{"disabled": "1:11", "dry_run": "1:10"} {
		on := setting + ": true\n" + oldRules
		changes := ruleset.Diff(load(t, "old.yaml", oldRules), load(t, "new.yaml", on))
		if len(changes) != 1 || changes[0].String() != "changed setting "+setting+": false -> true (new.yaml:"+place+")" {
			t.Errorf("got %v", changes)
		}
	}
}

func TestDiff_Rekeys(t *testing.T) {
	t.Parallel()
	const endpoint = "http: POST /pay, "
	for name, tc := range map[string]struct {
		old, next string
		want      bool
	}{
		"another key":             {endpoint + "key: a", endpoint + "key: b", true},
		"another key, allowed":    {endpoint + "key: a", endpoint + "key: b}\nallow_rekey: true #", true},
		"a key more":              {endpoint + "key: a", endpoint + "keys: [a, b]", false},
		"a key less":              {endpoint + "keys: [a, b]", endpoint + "key: b", false},
		"another prefix":          {endpoint + "key: a", endpoint + "key: a, prefix: p", true},
		"renamed, another key":    {endpoint + "name: x, key: a", endpoint + "name: y, key: b", true},
		"renamed, the same key":   {endpoint + "name: x, key: a", endpoint + "name: y, key: a", false},
		"another time":            {endpoint + "key: a", endpoint + "key: a, wait_time: 1s", false},
		"a wildcard in its place": {endpoint + "name: x, key: a", "http: POST /*, name: x, key: b", true},
	} {
		old, next := "rules:\n- {"+tc.old+"}\n", "rules:\n- {"+tc.next+"}\n"
		marked, changes := false, ruleset.Diff(load(t, "old.yaml", old), load(t, "new.yaml", next))
		for _, c := range changes {
			marked = marked || c.Rekeys
		}
		if marked != tc.want || len(changes) == 0 {
			t.Errorf("%s: got %v, want it marked: %v", name, changes, tc.want)
		}
	}
}

// If the endpoint of a rule takes other locks, Diff marks the fields that determine the lock, and the added
// and removed rules. It marks nothing else.
func TestDiff_RekeyedFields(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		old, next    string
		marked, kept []string // changes by rule and field
	}{
		"one field of several": {
			"{http: POST /a, name: a, key: k}", "{http: POST /a, name: a, key: l, wait_time: 3s, message: later}",
			[]string{"a key"},
			[]string{"a wait_time", "a message"},
		},
		"the prefix": {
			"{http: POST /a, name: a, key: k}", "{http: POST /a, name: a, key: k, prefix: 'p:', max_waiters: 3}",
			[]string{"a prefix"},
			[]string{"a max_waiters"},
		},
		"the kind": {
			"{http: POST /a, name: a, key: k}", "{http: POST /a, name: a, key: k, kind: fair}", []string{"a kind"}, nil,
		},
		"rules that come and go": {
			"{http: POST /a, name: a, key: k}", "{http: POST /a, name: b, key: l}", []string{"b added", "a removed"}, nil,
		},
		"another endpoint": {
			"{http: POST /a, name: a, key: k}\n{http: POST /b, name: b, key: k}", "{http: POST /a, name: a, key: l}\n{http: POST /b, name: b, keys: [k, l]}",
			[]string{"a key"},
			[]string{"b keys"},
		},
		"nothing": {
			"{http: POST /a, name: a, key: k}", "{http: POST /a, name: a, keys: [k, l], on_busy: skip}", nil, []string{"a keys", "a on_busy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var marked, kept []string
			for _, c := range ruleset.Diff(ruleLines(t, tc.old), ruleLines(t, tc.next)) {
				what := c.Rule + " " + c.Field
				switch {
				case c.OldRule == nil:
					what += "added"
				case c.NewRule == nil:
					what += "removed"
				}
				if c.Rekeys {
					marked = append(marked, what)
				} else {
					kept = append(kept, what)
				}
			}
			slices.Sort(kept)
			slices.Sort(tc.kept)
			if !slices.Equal(marked, tc.marked) || !slices.Equal(kept, tc.kept) {
				t.Errorf("got %q marked and %q kept, want %q and %q", marked, kept, tc.marked, tc.kept)
			}
		})
	}
}
