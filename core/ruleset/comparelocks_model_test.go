package ruleset_test

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// call is a call of an endpoint: the values of its keys and the conditions that are true for it.
type call struct {
	values     map[string]string
	conditions []string
}

// modelCalls returns calls with every combination of two values of three keys, and of two conditions.
func modelCalls() []call {
	var list []call
	for n := range 1 << 5 {
		c := call{values: map[string]string{}}
		for i, key := range []string{"k", "l", "m"} {
			c.values[key] = key + string('0'+rune(n>>i&1))
		}
		for i, condition := range []string{"true", "false"} { // two arbitrary texts
			if n>>(3+i)&1 == 1 {
				c.conditions = append(c.conditions, condition)
			}
		}
		list = append(list, c)
	}
	return list
}

// takes returns the locks that the call takes under the rules.
func (c call) takes(rules []*ruleset.Resolved) []string {
	var locks []string
	for _, r := range rules {
		if r.Disabled || r.DryRun || r.None || r.When != "" && !slices.Contains(c.conditions, r.When) {
			continue
		}
		for _, key := range r.Templates() {
			locks = append(locks, c.values[key])
		}
	}
	return locks
}

// excluded reports whether any two calls exclude each other if one of them runs under the old rules and the
// other one under the next rules. It considers only pairs that exclude each other under the old rules and
// also under the next rules.
func excluded(old, next []*ruleset.Resolved) bool {
	meet := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(lock string) bool { return slices.Contains(b, lock) })
	}
	type locks struct{ old, next []string }
	var all []locks
	for _, c := range modelCalls() {
		all = append(all, locks{c.takes(old), c.takes(next)})
	}
	for _, a := range all {
		for _, b := range all {
			if meet(a.old, b.old) && meet(a.next, b.next) && !meet(a.old, b.next) {
				return false
			}
		}
	}
	return true
}

// matching finds the rules of a call as the documentation of Endpoint describes it: an exact path before a
// longer prefix before a shorter one, and then an exact method before *.
func matching(set *ruleset.Set, method, path string) (rules []*ruleset.Resolved) {
	best := -1
	for _, r := range set.Rules() {
		e := r.Endpoint
		var rank int
		switch prefix, wild := strings.CutSuffix(e.Path, "*"); {
		case e.Method != "*" && e.Method != method:
			continue
		case !wild && e.Path == path:
			rank = 1000
		case wild && strings.HasPrefix(path, prefix):
			rank = 2 * len(prefix)
		default:
			continue
		}
		if e.Method == method {
			rank++
		}
		if rank > best {
			best, rules = rank, nil
		}
		if rank == best {
			rules = append(rules, r)
		}
	}
	return rules
}

// modelRules returns one to four rules of the endpoints.
func modelRules(random *rand.Rand, endpoints ...string) []ruleset.Rule {
	var rules []ruleset.Rule
	used := map[string]bool{}
	for range 1 + random.IntN(4) {
		r := ruleset.Rule{
			Endpoint: ruleset.HTTP(pick(random, endpoints...)),
			Name:     pick(random, "a", "b", "c"),
			Keys:     pick(random, []string{"k"}, []string{"l"}, []string{"m"}, []string{"k", "l"}, []string{"l", "m"}),
			When:     pick(random, "", "", "true", "false"),
			Disabled: random.IntN(8) == 0,
		}
		if id := r.Endpoint.String() + r.Name; !used[id] {
			used[id] = true
			rules = append(rules, r)
		}
	}
	return rules
}

// alter changes some rules.
func alter(random *rand.Rand, rules []ruleset.Rule) []ruleset.Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		switch other := modelRules(random, "*")[0]; random.IntN(4) {
		case 0:
			rules[i].Keys = other.Keys
		case 1:
			rules[i].When = other.When
		case 2:
			rules[i].Disabled = other.Disabled
		}
	}
	return rules
}

// Two calls that exclude each other before and after a change do so during the change. Otherwise the change
// is refused, or it is listed as an unlocking.
func TestCompareLocks_Model_Exclusion(t *testing.T) {
	t.Parallel()
	wild := []string{"*", "POST *", "* /*", "POST /*", "* /a/*", "POST /a/*", "PUT /a/*", "* /a", "POST /a", "* /a/b", "PUT /a/b"}
	for name, tc := range map[string]struct {
		endpoints, methods, paths []string
	}{
		"rules of an endpoint": {[]string{"POST /a"}, []string{"POST"}, []string{"/a"}},
		"wildcards":            {wild, []string{"GET", "POST", "PUT"}, []string{"", "/a", "/z", "/a/b", "/a/z", "/a/b/c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, 2))
			through, denied, named, needless := 0, 0, 0, 0
			for range 1500 {
				before, after := modelRules(random, tc.endpoints...), modelRules(random, tc.endpoints...)
				if random.IntN(2) == 0 {
					after = alter(random, before)
				}
				old, next := yamlSet(t, before), yamlSet(t, after)
				problems, list := ruleset.CompareLocks(old, next)
				harm := ""
				for _, method := range tc.methods {
					for _, path := range tc.paths {
						if !excluded(matching(old, method, path), matching(next, method, path)) {
							harm = method + " " + path
						}
					}
				}
				switch {
				case len(problems) > 0 && harm == "":
					needless++
				case len(problems) > 0:
					denied++
				case len(list) > 0:
					named++
				case harm != "":
					t.Fatalf("calls of %s do not exclude each other, but the change is neither refused nor listed:\n%s", harm, rulesOf(old, next))
				default:
					through++
				}
			}
			if denied < 100 || named < 100 || through < 20 || needless > denied/2 {
				t.Errorf("%d changes were refused, %d of them needlessly, %d were listed, and %d were accepted", denied+needless, needless, named, through)
			}
		})
	}
}

// loses reports whether a call takes a lock of a rule before the change, and no lock of that rule after it.
func loses(before, after []*ruleset.Resolved) bool {
	return slices.ContainsFunc(before, func(was *ruleset.Resolved) bool {
		return slices.ContainsFunc(modelCalls(), func(c call) bool {
			had, has := c.takes([]*ruleset.Resolved{was}), c.takes(after)
			return len(had) > 0 && !slices.ContainsFunc(had, func(lock string) bool { return slices.Contains(has, lock) })
		})
	})
}

// An accepted change is listed if a call loses a lock. Otherwise it is listed only if the condition of a rule
// has changed.
func TestCompareLocks_Model_Unlocked(t *testing.T) {
	t.Parallel()
	endpoints := []string{"*", "POST *", "* /*", "POST /*", "* /a/*", "POST /a/*", "PUT /a/*", "* /a", "POST /a", "* /a/b", "PUT /a/b"}
	random := rand.New(rand.NewPCG(5, 6))
	lost, kept := 0, 0
	for range 3000 {
		before, after := modelRules(random, endpoints...), modelRules(random, endpoints...)
		if random.IntN(2) == 0 {
			after = alter(random, before)
		}
		old, next := yamlSet(t, before), yamlSet(t, after)
		problems, list := ruleset.CompareLocks(old, next)
		if len(problems) > 0 {
			continue
		}
		harm := false
		for _, method := range []string{"GET", "POST", "PUT"} {
			for _, path := range []string{"", "/a", "/z", "/a/b", "/a/z", "/a/b/c"} {
				harm = harm || loses(matching(old, method, path), matching(next, method, path))
			}
		}
		more := slices.DeleteFunc(slices.Clone(list), func(u ruleset.Unlocking) bool { return u.Field == "when" })
		if harm && len(list) == 0 || !harm && len(more) > 0 {
			t.Fatalf("got %v, and a call loses a lock: %t\n%s", list, harm, rulesOf(old, next))
		}
		if harm {
			lost++
		} else {
			kept++
		}
	}
	if lost < 100 || kept < 100 {
		t.Errorf("got %d changes with a loss and %d without", lost, kept)
	}
}

// If a change is refused, the first step in the advice is accepted, and after it the whole change.
func TestCompareLocks_Model_Steps(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	denied := 0
	for range 3000 {
		before := modelRules(random, "POST /a")
		after := alter(random, before)
		if random.IntN(2) == 0 {
			after = modelRules(random, "POST /a")
		}
		for _, rules := range [][]ruleset.Rule{before, after} {
			for i := range rules {
				rules[i].Prefix = pick(random, "", "", "p:")
			}
		}
		old, next := yamlSet(t, before), yamlSet(t, after)
		problems := refused(old, next)
		if len(problems) == 0 {
			continue
		}
		denied++
		step := yamlSet(t, firstStep(t, after, problems))
		for _, change := range [][2]*ruleset.Set{{old, step}, {step, next}} {
			if got := refused(change[0], change[1]); len(got) > 0 {
				t.Fatalf("%v\nis the refusal of\n%s\nbut its advice is refused, too:\n%v\n%s", ruleset.Invalid(problems...), rulesOf(old, next), got, rulesOf(change[:]...))
			}
		}
	}
	if denied < 300 {
		t.Errorf("only %d changes were refused", denied)
	}
}

var stepText = regexp.MustCompile(`: write keys: (\[.*?\])( without prefix)?( without when)? first`)

// firstStep returns the rules after the first step in the advice of the problems.
func firstStep(t *testing.T, rules []ruleset.Rule, problems []*ruleset.Problem) []ruleset.Rule {
	t.Helper()
	rules = slices.Clone(rules)
	for _, p := range problems {
		parts := stepText.FindStringSubmatch(p.Message)
		i := slices.IndexFunc(rules, func(r ruleset.Rule) bool { return r.Name == p.Rule })
		if parts == nil || i < 0 {
			t.Fatalf("no advised step in %s", p)
		}
		rules[i].Key, rules[i].Keys = "", nil
		if err := json.Unmarshal([]byte(parts[1]), &rules[i].Keys); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(parts[0], "prefix") {
			rules[i].Prefix = ""
		}
		if strings.Contains(parts[0], "when") {
			rules[i].When = ""
		}
	}
	return rules
}

// rulesOf describes the rules of the sets, one rule on each line.
func rulesOf(sets ...*ruleset.Set) string {
	var text strings.Builder
	for _, set := range sets {
		for _, r := range set.Rules() {
			text.WriteString(r.Endpoint.String() + " " + r.Name + " " + r.Prefix + strings.Join(r.Keys, ",") + " when " + r.When)
			if r.Disabled {
				text.WriteString(" disabled")
			}
			text.WriteString("\n")
		}
		text.WriteString("\n")
	}
	return text.String()
}
