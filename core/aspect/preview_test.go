package aspect_test

import (
	"context"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/preview"
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
}

// A context with a function for the preview shows the rules and the values of a call. No lock is taken, and no
// handler runs.
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
