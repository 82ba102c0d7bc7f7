package ruleset_test

import (
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// The suggested name comes from the rule.
func TestNewSet_SuggestedName(t *testing.T) {
	t.Parallel()
	pay := ruleset.HTTP("POST /orders/:id/pay")
	for name, tt := range map[string]struct {
		rule ruleset.Rule
		want string
	}{
		"key":               {ruleset.Rule{Endpoint: pay, Key: "order_lock_#{path.id}"}, "order_lock"},
		"key of many words": {ruleset.Rule{Endpoint: pay, Key: "order:pay:#{path.id}"}, "order-pay"},
		"constant":          {ruleset.Rule{Endpoint: pay, Key: "till"}, "till"},
		"no fixed text":     {ruleset.Rule{Endpoint: pay, Key: "#{path.id}"}, "orders-id-pay"},
		"second key":        {ruleset.Rule{Endpoint: pay, Keys: []string{"#{path.id}", "order:#{path.id}"}}, "order"},
		"root":              {ruleset.Rule{Endpoint: ruleset.HTTP("PUT /"), Key: "#{query.id}"}, "rule"},
		"gRPC":              {ruleset.Rule{Endpoint: ruleset.GRPC("/shop.Orders/Pay"), Key: "#{req.id}"}, "shop-Orders-Pay"},
		"func":              {ruleset.Rule{Endpoint: ruleset.Func("close-day"), Key: "#{in}"}, "close-day"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := ruleset.Rule{Endpoint: tt.rule.Endpoint, Name: "stock", Key: "other"}
			_, err := ruleset.NewSet([]ruleset.Rule{tt.rule, other})
			wantOnlyProblem(t, err, `2 rules on one endpoint need names: write Name: "`+tt.want+`"`)
		})
	}
}
