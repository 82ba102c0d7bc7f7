package ruleset_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// namesOf are the names of rules, in their order.
func namesOf(rules []*ruleset.Resolved) []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}

// Whatever the rules are, those of a call are found as the documentation of Endpoint
// says it.
func TestSet_MatchIsWhatEndpointSays(t *testing.T) {
	t.Parallel()
	endpoints := []string{
		"*", "POST *", "* /*", "POST /*", "GET /*", "* /a/*", "POST /a/*", "PUT /a/*", "* /a", "POST /a", "GET /a", "* /a/b", "PUT /a/b", "* /a/b/*", "POST /a/b/c", "* /a/:id", "POST /a/:id/*",
	}
	random := rand.New(rand.NewPCG(5, 6))
	found := 0
	for range 500 {
		set := yamlSet(t, modelRules(random, endpoints...))
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			for _, path := range []string{"", "/", "/a", "/a/", "/a/b", "/a/b/c", "/a/b/c/d", "/a/:id", "/a/:id/pay", "/z", "/ab", "//"} {
				got, want := set.Match(ruleset.Route(method, path)), matching(set, method, path)
				if !slices.Equal(namesOf(got), namesOf(want)) {
					t.Fatalf("%s %s: got %q, want %q of\n%s", method, path, namesOf(got), namesOf(want), rulesOf(set))
				}
				if len(got) > 0 {
					found++
				}
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d calls had rules", found)
	}
}

// Calls of one transport have no rules of another, whatever stars they have.
func TestSet_MatchKeepsTransportsApart(t *testing.T) {
	t.Parallel()
	set := mustSet(t,
		ruleset.Rule{Endpoint: ruleset.HTTP("*"), Name: "http", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.GRPC("*"), Name: "grpc", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.Func("*"), Name: "func", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.GRPC("/shop.Orders/Pay"), Name: "pay", Key: "a"},
	)
	for e, want := range map[ruleset.Endpoint]string{
		ruleset.Route("POST", "/shop.Orders/Pay"): "http",
		ruleset.GRPC("/shop.Orders/Pay"):          "pay",
		ruleset.GRPC("/shop.Orders/Ship"):         "grpc",
		ruleset.Func("/shop.Orders/Pay"):          "func",
		ruleset.Func("close-day"):                 "func",
	} {
		if got := namesOf(set.Match(e)); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %q, want %q", e, got, want)
		}
	}
}

// None takes its endpoint out of a wildcard: Match has nothing, and Lookup says why.
func TestSet_LookupShowsNone(t *testing.T) {
	t.Parallel()
	set := mustSet(t,
		ruleset.Rule{Endpoint: ruleset.HTTP("POST /*"), Name: "all", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.HTTP("* /login"), None: true},
		ruleset.Rule{Endpoint: ruleset.HTTP("POST /open/*"), None: true},
	)
	for path, isNone := range map[string]bool{"/login": true, "/open/a": true, "/open": false, "/pay": false} {
		e := ruleset.Route("POST", path)
		rules := set.Lookup(e)
		if len(rules) != 1 || rules[0].None != isNone || (set.Match(e) == nil) != isNone {
			t.Errorf("%s: got %q, and %q to match", path, namesOf(rules), namesOf(set.Match(e)))
		}
	}
}
