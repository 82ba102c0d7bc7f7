package aspect_test

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

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
	if got := p.Variables(0); !slices.Equal(got, []string{"in"}) {
		t.Errorf("got %q", got)
	}
}
