package ruleset_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// unlocks reports whether a rule locks, and none of its keys is locked after it.
func unlocks(was *ruleset.Resolved, after []*ruleset.Resolved) bool {
	return !was.Disabled && !slices.ContainsFunc(after, func(r *ruleset.Resolved) bool {
		shared := func(key string) bool { return slices.Contains(was.Templates(), key) }
		return !r.Disabled && slices.ContainsFunc(r.Templates(), shared)
	})
}

// Whatever is changed and not refused: it is told if there is a call that loses a lock, and
// only then.
func TestUnlocked_TellsEveryLoss(t *testing.T) {
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
		if ruleset.Rekeyed(old, next) != nil {
			continue
		}
		harm := ""
		for _, method := range []string{"GET", "POST", "PUT"} {
			for _, path := range []string{"", "/a", "/z", "/a/b", "/a/z", "/a/b/c"} {
				is := matching(next, method, path)
				if slices.ContainsFunc(matching(old, method, path), func(was *ruleset.Resolved) bool { return unlocks(was, is) }) {
					harm = method + " " + path
				}
			}
		}
		if got := ruleset.Unlocked(old, next); (len(got) > 0) != (harm != "") {
			t.Fatalf("got %v, and calls of %q lose a lock:\n%s", got, harm, rulesOf(old, next))
		}
		if harm == "" {
			kept++
		} else {
			lost++
		}
	}
	if lost < 100 || kept < 100 {
		t.Errorf("got %d changes with a loss and %d without", lost, kept)
	}
}
