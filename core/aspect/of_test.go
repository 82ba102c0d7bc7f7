package aspect_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
)

func TestOf(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	newLocks := func(opts ...core.Option) *core.Client {
		locks, err := core.New(srv.Client(), opts...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close(t.Context()) })
		return locks
	}
	locks := newLocks()
	first, err := aspect.Of(locks)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := aspect.Of(locks); again != first || err != nil {
		t.Errorf("got %p, %v: want the same aspect for the same client", again, err)
	}
	if other, err := aspect.Of(newLocks()); other == first || err != nil {
		t.Errorf("got %p, %v: want another aspect for another client", other, err)
	}
	if mustAspect(t, locks) == first {
		t.Error("New returned the aspect of Of")
	}

	if a, err := aspect.Of(nil); a != nil || err == nil || !strings.Contains(err.Error(), "the lock client is nil") {
		t.Errorf("nil client: got %v, %v", a, err)
	}
	wrong := newLocks(core.WithObserver(&core.Observer{Rules: wrongObserver{}}))
	for range 2 {
		if a, err := aspect.Of(wrong); a != nil || err == nil {
			t.Errorf("bad observer: got %v, %v", a, err)
		}
	}
}

func TestLockRule(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		further []ruleset.Rule
		want    string // part of the error; "" for none
	}{
		"key only":     {},
		"more fields":  {further: []ruleset.Rule{{Name: "pay", Kind: "fair"}}},
		"two rules":    {further: make([]ruleset.Rule, 2), want: "2 rules: write one ruleset.Rule with all further fields"},
		"zeros only":   {further: []ruleset.Rule{{WaitTime: 0}}, want: "the rule after the key sets no field, because a zero is not set: write WaitTime: ruleset.NoWait"},
		"Key":          {further: []ruleset.Rule{{Key: "k"}}, want: "the rule has a key besides the argument"},
		"Keys":         {further: []ruleset.Rule{{Keys: []string{"k"}}}, want: "the rule has a key besides the argument"},
		"its endpoint": {further: []ruleset.Rule{{Endpoint: ruleset.Route("POST", "/x")}}, want: "the rule has the Endpoint http POST /x"},
	} {
		rule, err := aspect.LockRule("order:1", test.further)
		switch {
		case test.want != "":
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want an error with %q", name, err, test.want)
			}
		case err != nil || rule.Key != "order:1":
			t.Errorf("%s: got %+v, %v", name, rule, err)
		case len(test.further) == 1 && (rule.Name != test.further[0].Name || rule.Kind != test.further[0].Kind):
			t.Errorf("%s: got %+v, want the further fields", name, rule)
		}
	}
}
