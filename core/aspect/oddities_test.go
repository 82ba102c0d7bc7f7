package aspect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

func TestOddities_OfAPointAndOfAPreview(t *testing.T) {
	t.Parallel()
	schema, err := keyexpr.NewSchema(keyexpr.Variable{Name: "route", Type: keyexpr.TypeFor[string]()})
	if err != nil {
		t.Fatal(err)
	}
	constant := ruleset.Rule{Key: "all", Prefix: "shop:"}
	disabled, semaphore := constant, constant
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
		{ruleset.Route("POST", "/import"), ruleset.Rule{Key: "all:#{route}"}, ""},
		{ruleset.Route("POST", "/import"), disabled, ""},
		{ruleset.Route("POST", "/import"), semaphore, ""},
		{ruleset.Func("close-day"), constant, ""},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip}, "OnBusy: the function runs in every instance, one after the other, because a call is skipped only after its wait: set WaitTime to none (ruleset.NoWait)"},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip, WaitTime: ruleset.WaitForever}, "OnBusy: the function runs in every instance"},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip, WaitTime: ruleset.NoWait}, ""},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip, Debounce: time.Hour}, ""},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip, Disabled: true}, ""},
		{ruleset.Func("close-day"), ruleset.Rule{Key: "all", OnBusy: failpolicy.Skip, Kind: ruleset.Semaphore, Permits: 2}, ""},
		{ruleset.Route("POST", "/orders/:id/pay"), ruleset.Rule{Key: "all:#{route}", OnBusy: failpolicy.Skip}, ""},
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
