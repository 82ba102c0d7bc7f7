package aspect_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// wantTexts checks that each text contains the words at its place.
func wantTexts(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %d texts, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

func mustLoad(t *testing.T, text string) *ruleset.Set {
	t.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// everyTransport is a file with rules for every transport.
const everyTransport = `rules:
  - {http: POST /orders, key: orders}
  - {grpc: /shop.Orders/Pay, key: pay}
  - {grpc: /shop.Orders/Ship, key: ship}
  - {func: paid, key: "topic:#{topic}"}
  - {http: POST /free, none: true}
`

// The first call under a set warns of the rules that no adapter has, once.
func TestClaims_FirstCall(t *testing.T) {
	t.Parallel()
	var seen warnings
	r, table := tableOf(t, mustLoad(t, everyTransport), seen.observer())
	if err := r.Check("paid").Err(); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, seen.take()) // other adapters may still get the set
	for range 2 {
		table.At("paid")
	}
	wantTexts(t, seen.take(),
		"locks.yaml:2:12: rule of http POST /orders: http: no guard of this program has the rule, so it locks nothing: "+
			"give the set to ginlock's Middleware or httplock.WithSet; if another program has the rule, write services",
		"locks.yaml:3:12: rule of grpc /shop.Orders/Pay: grpc: no guard of this program has the rule (and 1 more for grpc), so it locks nothing: "+
			"give the set to grpclock.WithSet or connectlock.WithSet; if another program has the rule, write services")
}

// The adapter with the set warns, too, if no rule is for it.
func TestClaims_OnlyForeignRules(t *testing.T) {
	t.Parallel()
	var seen warnings
	_, table := tableOf(t, mustLoad(t, "rules:\n  - {grpc: /shop.Orders/Pay, key: pay}\n"), seen.observer())
	if e := table.At("free"); e != nil {
		t.Errorf("got %v", e)
	}
	wantTexts(t, seen.take(), "/shop.Orders/Pay")
}

// Adapters of several clients may share a set, and each claims its prefix.
func TestClaims_OtherAdapters(t *testing.T) {
	t.Parallel()
	var seen warnings
	set := mustLoad(t, "rules:\n  - {func: task/send, key: a}\n  - {func: job/send, key: b}\n  - {func: close-day, key: c}\n  - {func: task/*, key: d}\n")
	claim := func(prefix string) *aspect.Table[string, int] {
		a := mustAspect(t, newBench(t, core.WithObserver(seen.observer())).locks)
		adapter := topics(a)
		adapter.Prefix = prefix
		table, err := aspect.NewRegistry(a, adapter).Table(set)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	first := claim("task/")
	claim("job/")
	first.At("task/send")
	wantTexts(t, seen.take(), "rule of func close-day: func: no guard of this program has the rule, so it locks nothing: give the set to aspect.WithSet, or to the adapter for the name")
}

// A wrapped function is the first call of a program whose guards take no set.
func TestClaims_WrappedFunction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var seen warnings
	set := mustLoad(t, "rules:\n  - {grpc: /shop.Orders/Pay, key: pay}\n")
	pay := mustWrap(t, mustAspect(t, b.observe(t, seen.observer()), aspect.WithSet(set)), ruleset.Rule{Name: "pay", Key: "pay"}, charge)
	wantTexts(t, seen.take())
	if _, err := pay(t.Context(), order{ID: "42"}); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, seen.take(), "/shop.Orders/Pay")
}

func TestClaims_Severity(t *testing.T) {
	t.Parallel()
	for severity, want := range map[string][]string{"error": {"POST /orders", "Orders/Pay"}, "warn": {"POST /orders", "Orders/Pay"}, "ignore": nil} {
		var seen warnings
		_, table := tableOf(t, mustLoad(t, "unmatched: "+severity+"\n"+everyTransport), seen.observer())
		table.At("paid")
		wantTexts(t, seen.take(), want...)
	}
}

// Every set of a reload has its own first call. By then, all adapters have prepared it.
func TestClaims_Reload(t *testing.T) {
	t.Parallel()
	var seen warnings
	p := &mutableProvider{set: mustLoad(t, "rules:\n  - {func: paid, key: \"topic:#{topic}\"}\n")}
	_, table := tableOf(t, p, seen.observer())
	table.At("paid")
	wantTexts(t, seen.take())
	if err := p.replace(mustLoad(t, everyTransport)); err != nil {
		t.Fatal(err)
	}
	table.At("paid")
	wantTexts(t, seen.take(), "POST /orders", "Orders/Pay")
}

// Two guards of one client have one rule for one route. A request that passes both would be answered with 500.
func TestClaims_TwoGuards(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, "rules:\n  - {http: POST /orders, key: orders}\n  - {http: POST /refunds, key: refunds}\n")
	orders, refunds := ruleset.Route("POST", "/orders"), ruleset.Route("POST", "/refunds")
	locks := newBench(t).locks
	guard := func(locks *core.Client) *aspect.Registry[ruleset.Endpoint, int] {
		a := mustAspect(t, locks)
		r := aspect.NewRegistry(a, aspect.Adapter[ruleset.Endpoint, int]{
			Transport: ruleset.TransportHTTP,
			Endpoint:  func(e ruleset.Endpoint) ruleset.Endpoint { return e },
			Compile: func(_ *ruleset.Set, e ruleset.Endpoint, rules []*ruleset.Resolved) (*aspect.Point, int, error) {
				if len(rules) == 0 {
					return nil, 0, nil
				}
				point, err := a.Prepare(aspect.Site{Endpoint: e}, rules...)
				return point, 0, err
			},
		})
		if _, err := r.Table(set); err != nil {
			t.Fatal(err)
		}
		return r
	}
	check := func(r *aspect.Registry[ruleset.Endpoint, int], routes ...ruleset.Endpoint) []string {
		var texts []string
		for _, p := range r.Check(routes...).Errors() {
			if text := p.Error(); !strings.Contains(text, "matches no route") {
				texts = append(texts, text)
			}
		}
		return texts
	}
	first := guard(locks)
	for range 2 {
		wantTexts(t, check(first, orders))
	}
	wantTexts(t, check(guard(locks), refunds))                         // other routes of the set
	wantTexts(t, check(guard(newBench(t).locks), orders))              // another client
	wantTexts(t, check(guard(locks), ruleset.Route("GET", "/orders"))) // a route without rules
	wantTexts(t, check(guard(locks), orders, refunds),
		"locks.yaml:2:12: rule of http POST /orders: http: two guards have this rule from one set, and a request that passes both is answered with 500: use one guard, which serves any number of routers",
		"POST /refunds")
}
