package ruleset_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

func TestSet_Match(t *testing.T) {
	t.Parallel()
	set := mustSet(t,
		ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id"), Name: "first", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id"), Name: "second", Key: "b"},
		ruleset.Rule{Endpoint: ruleset.HTTP("* /orders/:id"), Name: "any method", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/*"), Name: "below orders", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.HTTP("* /orders/:id/*"), Name: "below one order", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.HTTP("GET /*"), Name: "every get", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.HTTP("*"), Name: "everything", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.GRPC("/shop.Orders/Pay"), Name: "pay", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.GRPC("/shop.Orders/*"), Name: "orders service", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.Func("close-day"), Name: "close", Key: "a"},
	)
	for _, tc := range []struct {
		endpoint ruleset.Endpoint
		want     []string
	}{
		{ruleset.Route("POST", "/orders/:id"), []string{"first", "second"}},
		{ruleset.Route("PUT", "/orders/:id"), []string{"any method"}},
		{ruleset.Route("POST", "/orders/new"), []string{"below orders"}},
		{ruleset.Route("POST", "/orders/:id/pay"), []string{"below one order"}},
		{ruleset.Route("GET", "/users"), []string{"every get"}},
		{ruleset.Route("PUT", "/users"), []string{"everything"}},
		{ruleset.Route("PUT", "/orders"), []string{"everything"}},
		{ruleset.GRPC("/shop.Orders/Pay"), []string{"pay"}},
		{ruleset.GRPC("/shop.Orders/Ship"), []string{"orders service"}},
		{ruleset.GRPC("/shop.Stock/Ship"), nil},
		{ruleset.Func("close-day"), []string{"close"}},
		{ruleset.Func("other"), nil},
	} {
		var got []string
		for _, r := range set.Match(tc.endpoint) {
			got = append(got, r.Name)
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.endpoint, got, tc.want)
		}
	}
}

// A rule for everything does not match the services that operate a server. A rule that names such a service
// does.
func TestSet_Match_Infrastructure(t *testing.T) {
	t.Parallel()
	everything := mustSet(t,
		ruleset.Rule{Endpoint: ruleset.GRPC("*"), Name: "everything", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.HTTP("*"), Name: "everything", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.HTTP("POST /*"), Name: "everything", Key: "a"},
	)
	exact := mustSet(t,
		ruleset.Rule{Endpoint: ruleset.GRPC("*"), Name: "everything", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.GRPC("/grpc.health.v1.Health/*"), Name: "service", Key: "a"},
		ruleset.Rule{Endpoint: ruleset.GRPC("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"), Name: "method", Key: "a"},
	)
	for _, tc := range []struct {
		set  *ruleset.Set
		path string
		want bool
	}{
		{everything, "/grpc.health.v1.Health/Check", false},
		{everything, "/grpc.health.v1.Health/Watch", false},
		{everything, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", false},
		{everything, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", false},
		{everything, "/grpc.channelz.v1.Channelz/GetServers", false},
		{everything, "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus", false},
		{everything, "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics", false},
		{everything, "/kratos.api.Metadata/ListServices", false},
		{everything, "/grpc.healthy.v1.Farm/Feed", true},
		{everything, "/shop.v1.Orders/grpc.health.v1.Health", true},
		{exact, "/grpc.health.v1.Health/Check", true},
		{exact, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", true},
		{exact, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", false},
	} {
		if got := tc.set.Match(ruleset.GRPC(tc.path)) != nil; got != tc.want {
			t.Errorf("%s: matched is %v", tc.path, got)
		}
		if got := tc.set.Match(ruleset.Route("POST", tc.path)) != nil; tc.set == everything && got != tc.want {
			t.Errorf("POST %s: matched is %v", tc.path, got)
		}
	}
}

func TestSet_Match_Allocs(t *testing.T) {
	set := mustSet(t,
		ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id"), Key: "a"},
		ruleset.Rule{Endpoint: ruleset.HTTP("* /api/*"), Key: "a"},
	)
	for _, path := range []string{"/orders/:id", "/api/v1/x", "/none/of/them"} {
		if n := testing.AllocsPerRun(100, func() { set.Match(ruleset.Route("POST", path)) }); n != 0 {
			t.Errorf("%s: got %v allocations, want 0", path, n)
		}
	}
}

func TestSet_Zero(t *testing.T) {
	t.Parallel()
	for _, set := range []*ruleset.Set{nil, {}} {
		if len(set.Rules()) != 0 || set.Match(ruleset.GRPC("/a.B/C")) != nil {
			t.Errorf("%v is not an empty set", set)
		}
		want := ruleset.Settings{Unmatched: ruleset.SeverityError, Uncovered: ruleset.SeverityIgnore}
		if set.Settings() != want || set.File() != "" || set.Lookup(ruleset.HTTP("GET /a")) != nil {
			t.Errorf("%v has settings %v and the file %q", set, set.Settings(), set.File())
		}
	}
}

func TestNewSet_CopiesKeys(t *testing.T) {
	t.Parallel()
	keys := []string{"a", "b"}
	set := mustSet(t, ruleset.Rule{Endpoint: ruleset.Func("f"), Keys: keys})
	keys[0] = "changed"
	if got := set.Rules()[0].Keys[0]; got != "a" {
		t.Errorf("got %q, want %q", got, "a")
	}
}

func TestSet_File(t *testing.T) {
	t.Parallel()
	loaded, err := ruleset.Load("locks.yaml", []byte("rules: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	written, err := ruleset.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	for set, want := range map[*ruleset.Set]string{loaded: "locks.yaml", written: "", nil: ""} {
		if got := set.File(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func BenchmarkSet_MatchUnmatched(b *testing.B) {
	set := mustSet(b,
		ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id"), Key: "a"},
		ruleset.Rule{Endpoint: ruleset.HTTP("* /api/*"), Key: "a"},
	)
	e := ruleset.Route("GET", "/users/:id/friends")
	b.ReportAllocs()
	for b.Loop() {
		set.Match(e)
	}
}

// Match finds the rules of a call as the documentation of Endpoint describes it.
func TestSet_Match_Model(t *testing.T) {
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

// A call does not match rules of another transport, even with wildcards.
func TestSet_Match_Transports(t *testing.T) {
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

// None excludes its endpoint from a wildcard: Match returns nothing, and Lookup returns the rule.
func TestSet_Lookup_None(t *testing.T) {
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
			t.Errorf("%s: Lookup returned %q, and Match %q", path, namesOf(rules), namesOf(set.Match(e)))
		}
	}
}

// Subscribe prepares and commits a Set once. It returns the error of prepare.
func TestSet_Subscribe(t *testing.T) {
	t.Parallel()
	set := mustSet(t, ruleset.Rule{Endpoint: task(), Key: "a"})
	var got []*ruleset.Set
	cancel, err := set.Subscribe(func(next *ruleset.Set) (func(), error) {
		return func() { got = append(got, next) }, nil
	})
	if err != nil || len(got) != 1 || got[0] != set || set.Current() != set {
		t.Errorf("got %v, %v", got, err)
	}
	cancel()
	cancel()
	refused := errors.New("no")
	if cancel, err := set.Subscribe(func(*ruleset.Set) (func(), error) { return nil, refused }); !errors.Is(err, refused) || cancel != nil {
		t.Errorf("got %v", err)
	}
}

// byValue is a provider that is not a pointer.
type byValue struct{ *ruleset.Set }

func TestCheckProvider(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		p  ruleset.Provider
		ok bool
	}{
		"nil":         {nil, false},
		"no set":      {(*ruleset.Set)(nil), false},
		"no live set": {(*ruleset.Live)(nil), false},
		"empty set":   {new(ruleset.Set), true},
		"a value":     {byValue{}, true},
	} {
		if err := ruleset.CheckProvider(tc.p); (err == nil) != tc.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
