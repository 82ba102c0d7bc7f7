package ruleset_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func mustSet(tb testing.TB, rules ...ruleset.Rule) *ruleset.Set {
	tb.Helper()
	set, err := ruleset.NewSet(rules)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

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

// A rule for everything is not for the services by which a server is looked after. A rule that names
// such a service is.
func TestSet_MatchLeavesInfrastructureAlone(t *testing.T) {
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

func TestSet_MatchDoesNotAllocate(t *testing.T) {
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

func TestSet_ZeroIsEmpty(t *testing.T) {
	t.Parallel()
	for _, set := range []*ruleset.Set{nil, {}} {
		if len(set.Rules()) != 0 || set.Match(ruleset.GRPC("/a.B/C")) != nil {
			t.Errorf("%v is not empty", set)
		}
		want := ruleset.Settings{Unmatched: ruleset.SeverityError, Uncovered: ruleset.SeverityIgnore}
		if set.Settings() != want || set.File() != "" || set.Lookup(ruleset.HTTP("GET /a")) != nil {
			t.Errorf("%v has settings %v and the file %q", set, set.Settings(), set.File())
		}
	}
}

func TestSet_KeepsNoReferenceToTheCallersRule(t *testing.T) {
	t.Parallel()
	keys := []string{"a", "b"}
	set := mustSet(t, ruleset.Rule{Endpoint: ruleset.Func("f"), Keys: keys})
	keys[0] = "changed"
	if got := set.Rules()[0].Keys[0]; got != "a" {
		t.Errorf("got %q, want %q", got, "a")
	}
}

func TestResolved_Defaults(t *testing.T) {
	t.Parallel()
	got := mustSet(t, ruleset.Rule{Endpoint: ruleset.HTTP("POST /pay"), Key: "a"}).Rules()[0].Rule
	want := ruleset.Rule{
		Endpoint: ruleset.Route("POST", "/pay"), Name: "POST /pay", Key: "a", Kind: ruleset.Reentrant,
		WaitTime: 10 * time.Second, LeaseTime: ruleset.Watchdog, KeyFormat: ruleset.Encode,
		OnBusy: failpolicy.Error, OnBackend: failpolicy.Error, OnKey: failpolicy.Error, OnOverload: failpolicy.Error,
		OnLost: failpolicy.Cancel,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

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

func TestResolved_RuleBeatsProfileBeatsDefaults(t *testing.T) {
	t.Parallel()
	rules, err := ruleset.Resolve(
		[]ruleset.Rule{{Key: "a", Profile: "quick", LeaseTime: time.Second}},
		ruleset.WithProfile("default", ruleset.Rule{WaitTime: time.Minute, LeaseTime: time.Minute, Prefix: "shop:"}),
		ruleset.WithProfile("quick", ruleset.Rule{WaitTime: 2 * time.Second}),
	)
	if err != nil {
		t.Fatal(err)
	}
	r := rules[0]
	if r.WaitTime != 2*time.Second || r.LeaseTime != time.Second || r.Prefix != "shop:" {
		t.Errorf("got %v, %v, %q", r.WaitTime, r.LeaseTime, r.Prefix)
	}
	for field, want := range map[string]ruleset.Layer{
		"wait_time": ruleset.LayerProfile, "lease_time": ruleset.LayerCode, "prefix": ruleset.LayerDefault,
		"fallback": ruleset.LayerNone, "no such field": ruleset.LayerNone,
	} {
		if got := r.Source(field).Layer; got != want {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
}

func TestResolved_DebounceNeitherWaitsNorEnds(t *testing.T) {
	t.Parallel()
	r := mustSet(t, ruleset.Rule{Endpoint: ruleset.Func("f"), Key: "a", Profile: "quick", Debounce: time.Second}).Rules()[0]
	if r.WaitTime != ruleset.NoWait || r.LeaseTime != ruleset.Watchdog {
		t.Errorf("got %v, %v, want NoWait, Watchdog", r.WaitTime, r.LeaseTime)
	}
}

func TestBuildSet_OverlaysLayers(t *testing.T) {
	t.Parallel()
	pay := ruleset.HTTP("POST /pay")
	yaml := ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 7, Column: 3}
	proto := ruleset.Source{Layer: ruleset.LayerProto, File: "order.proto", Line: 12}
	set, err := ruleset.BuildSet([]ruleset.Declared{
		{
			Rule:   ruleset.Rule{Endpoint: pay, Keys: []string{"old", "new"}, WaitTime: time.Second},
			Source: yaml,
			Fields: map[string]ruleset.Source{"disabled": {Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 9, Column: 5}},
		},
		{Rule: ruleset.Rule{Endpoint: pay, Key: "old", Disabled: true, Prefix: "shop:", OnBusy: failpolicy.Skip}},
		{Rule: ruleset.Rule{Endpoint: pay, WaitTime: time.Minute, OnBusy: failpolicy.Proceed}, Source: proto},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := set.Match(pay)[0]
	if r.Key != "" || !reflect.DeepEqual(r.Keys, []string{"old", "new"}) {
		t.Errorf("keys: got %q, %q", r.Key, r.Keys)
	}
	if r.Disabled || r.WaitTime != time.Second || r.OnBusy != failpolicy.Proceed || r.Prefix != "shop:" {
		t.Errorf("got %+v", r.Rule)
	}
	for field, want := range map[string]string{
		"keys": "locks.yaml:7:3", "key": "not set", "disabled": "locks.yaml:9:5", "on_busy": "order.proto:12", "prefix": "code", "on_key": "default",
	} {
		if got := r.Source(field).String(); got != want {
			t.Errorf("%s: got source %q, want %q", field, got, want)
		}
	}
}

func TestBuildSet_KeepsTheOrderOfFirstDeclaration(t *testing.T) {
	t.Parallel()
	e := ruleset.Func("f")
	set, err := ruleset.BuildSet([]ruleset.Declared{
		{Rule: ruleset.Rule{Endpoint: e, Name: "b", Key: "b"}},
		{Rule: ruleset.Rule{Endpoint: e, Name: "a", Key: "a"}},
		{Rule: ruleset.Rule{Endpoint: e, Name: "b", Prefix: "p"}, Source: ruleset.Source{Layer: ruleset.LayerYAML}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if rules := set.Match(e); len(rules) != 2 || rules[0].Name != "b" || rules[0].Prefix != "p" || rules[1].Name != "a" {
		t.Errorf("got %+v", rules)
	}
}

// The table has the fields of the struct, in their order.
func TestFields_AreThoseOfRule(t *testing.T) {
	t.Parallel()
	var names []string
	for field := range reflect.TypeFor[ruleset.Rule]().Fields() {
		names = append(names, outsideGo(field.Name))
	}
	if got := ruleset.Fields(); !slices.Equal(got, names) {
		t.Errorf("got %q, want %q", got, names)
	}
}

func TestFields_HaveUniqueNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range ruleset.Fields() {
		if name == "" || seen[name] {
			t.Errorf("name %q is empty or used twice", name)
		}
		seen[name] = true
	}
}

func TestEndpoint_Texts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		endpoint    ruleset.Endpoint
		text, label string
	}{
		{ruleset.Endpoint{}, "", ""},
		{ruleset.HTTP("POST /orders/:id/pay"), "http POST /orders/:id/pay", "POST /orders/:id/pay"},
		{ruleset.HTTP("*"), "http *", "*"},
		{ruleset.GRPC("/shop.Orders/Pay"), "grpc /shop.Orders/Pay", "/shop.Orders/Pay"},
		{ruleset.Func("close-day"), "func close-day", "close-day"},
	} {
		if got := tc.endpoint.String(); got != tc.text {
			t.Errorf("String: got %q, want %q", got, tc.text)
		}
		if got := tc.endpoint.Label(); got != tc.label {
			t.Errorf("Label: got %q, want %q", got, tc.label)
		}
	}
	if ruleset.HTTP("POST  /x") != ruleset.Route("POST", "/x") {
		t.Error("HTTP and Route differ")
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
