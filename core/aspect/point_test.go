package aspect_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/preview"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

func TestOddities(t *testing.T) {
	t.Parallel()
	text := func(name string) keyexpr.Variable {
		return keyexpr.Variable{Name: name, Type: keyexpr.TypeFor[string]()}
	}
	schema, err := keyexpr.NewSchema(text("route"), text("method"), text("client_ip"))
	if err != nil {
		t.Fatal(err)
	}
	constant := ruleset.Rule{Key: "all", Prefix: "shop:"}
	disabled, semaphore := constant, constant
	under := func(e ruleset.Endpoint, key string) ruleset.Rule { return ruleset.Rule{Endpoint: e, Key: key} }
	disabled.Disabled = true
	semaphore.Kind, semaphore.Permits = ruleset.Semaphore, 2
	for _, c := range []struct {
		endpoint ruleset.Endpoint
		rule     ruleset.Rule
		want     string // "" for nothing
	}{
		{ruleset.Route("POST", "/import"), constant, `Key: "shop:all" is one lock for all requests of the endpoint: put a part such as #{body.id} into it`},
		{ruleset.Route("POST", "/orders/:id/pay"), constant, "#{path.id}"},
		{ruleset.GRPC("/shop.v1.Orders/Pay"), constant, "#{req.order_id}"},
		{ruleset.Route("POST", "/import"), ruleset.Rule{Keys: []string{"all"}}, "Keys: "},
		{ruleset.Route("POST", "/import"), ruleset.Rule{Keys: []string{"a", "b"}}, ""},
		{ruleset.Route("POST", "/import"), ruleset.Rule{Key: "all:#{route}"}, `Key: "all:#{route}" is one lock for all requests of the endpoint: put a part such as #{body.id} into it`},
		{ruleset.Route("POST", "/import"), ruleset.Rule{Key: "all:#{method}", Prefix: "shop:"}, `Key: "all:#{method}" is one lock`},
		{ruleset.Route("POST", "/import"), ruleset.Rule{Key: "#{method}:#{route}"}, "is one lock"},
		{ruleset.Route("POST", "/import"), ruleset.Rule{Key: "all:#{method}:#{client_ip}"}, ""},
		{ruleset.Route("POST", "/import"), under(ruleset.Route("*", "/*"), "all:#{route}"), ""},
		{ruleset.Route("POST", "/import"), under(ruleset.Route("*", "/*"), "all:#{method}"), "is one lock"},
		{ruleset.GRPC("/shop.v1.Orders/Pay"), ruleset.Rule{Key: "all:#{method}"}, "is one lock"},
		{ruleset.GRPC("/shop.v1.Orders/Pay"), under(ruleset.GRPC("/shop.v1.Orders/*"), "all:#{method}"), ""},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all:#{method}"}, ""},
		{ruleset.Route("POST", "/import"), disabled, ""},
		{ruleset.Route("POST", "/import"), semaphore, ""},
		{ruleset.Func("close-day"), constant, ""},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip}, "OnBusy: the function runs in every instance, one after the other, because a call is skipped only after its wait: set WaitTime to none (ruleset.NoWait)"},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip, WaitTime: ruleset.WaitForever}, "OnBusy: the function runs in every instance"},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip, WaitTime: ruleset.NoWait}, ""},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip, Debounce: time.Hour}, ""},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip, Disabled: true}, ""},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip, Kind: ruleset.Semaphore, Permits: 2}, ""},
		{ruleset.Route("POST", "/orders/:id/pay"), ruleset.Rule{Key: "all:#{client_ip}", OnBusy: failpolicy.Skip}, ""},
	} {
		t.Run(fmt.Sprintf("%s %v%v", c.endpoint, c.rule.Key, c.rule.Keys), func(t *testing.T) {
			t.Parallel()
			at := aspect.Site{Endpoint: c.endpoint, Schema: schema}
			point, err := mustAspect(t, offline(t)).Compile(at, c.rule)
			if err != nil {
				t.Fatal(err)
			}
			preview, err := aspect.NewPreview(at, point.Rules()...)
			if err != nil {
				t.Fatal(err)
			}
			got, same := fmt.Sprint(point.Oddities()), fmt.Sprint(preview.Oddities())
			if got != same || (got == "[]") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %s and %s, want %q", got, same, c.want)
			}
		})
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	set := file(t,
		ruleset.Rule{Endpoint: payFunc, Name: "items", Prefix: "shop:", Keys: []string{"order:#{in.ID}", "item:#{in.Items}"}, When: "in.VIP"},
		ruleset.Rule{Endpoint: payFunc, Name: "all", Prefix: "#", Key: "all"})
	p, err := aspect.NewPreview(site(t), set.Match(payFunc)...)
	if err != nil {
		t.Fatal(err)
	}
	env := keyexpr.Values{order{ID: "42", Items: []string{"b", "a"}}}
	names, err := p.Names(0, env)
	if want := []string{"shop:item:a", "shop:item:b", "shop:order:42"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %q, %v, want %q", names, err, want)
	}
	if applies, err := p.Applies(0, env); applies || err != nil {
		t.Errorf("the condition: %t, %v", applies, err)
	}
	if applies, err := p.Applies(1, env); !applies || err != nil {
		t.Errorf("no condition: %t, %v", applies, err)
	}
}

// If the context of a call contains a preview function, the function gets the rules and the values of the
// call. The call takes no lock, and its handler does not run.
func TestRun_Preview(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, mustAspect(t, offline(t)), pay())
	var names []string
	ctx := context.WithValue(t.Context(), preview.Key{}, func(_ aspect.Site, rules []*ruleset.Resolved, p *aspect.Preview, env keyexpr.Env) {
		for i := range rules {
			some, err := p.Names(i, env)
			wantErr(t, "names", err, nil)
			names = append(names, some...)
		}
	})
	c := &call{in: order{ID: "42"}}
	want(t, "outcome", p.Run(ctx, c), aspect.Outcome{Verdict: aspect.VerdictRan})
	want(t, "handled", c.handled, 0)
	if !slices.Equal(names, []string{"order:42"}) {
		t.Errorf("got %q", names)
	}
}
