package aspect_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// topics returns an adapter for topics, which are functions here. X is the length of a topic.
func topics(a *aspect.Aspect) aspect.Adapter[string, int] {
	return aspect.Adapter[string, int]{
		Transport: ruleset.TransportFunc,
		Endpoint:  ruleset.Func,
		Compile: func(_ *ruleset.Set, topic string, rules []*ruleset.Resolved) (*aspect.Point, int, error) {
			if len(rules) == 0 {
				return nil, 0, nil
			}
			schema, err := keyexpr.NewSchema(keyexpr.Variable{Name: "topic", Type: keyexpr.TypeFor[string]()})
			if err != nil {
				return nil, 0, err
			}
			point, err := a.Prepare(aspect.Site{Endpoint: ruleset.Func(topic), Schema: schema}, rules...)
			return point, len(topic), err
		},
		Changes: func(string) bool { return true },
	}
}

// rulesOn returns rules for topics, all with the same template.
func rulesOn(key string, names ...string) []ruleset.Rule {
	var rules []ruleset.Rule
	for _, name := range names {
		rules = append(rules, ruleset.Rule{Endpoint: ruleset.Func(name), Key: key})
	}
	return rules
}

// inForce is an observer that records the rules in force.
type inForce struct {
	mu   sync.Mutex
	live map[aspect.Subject]int
}

func (o *inForce) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Rule: o.observeRule}}
}

func (o *inForce) observeRule(i aspect.RuleInfo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.live == nil {
		o.live = map[aspect.Subject]int{}
	}
	if i.Retracted {
		delete(o.live, i.Subject)
		return
	}
	o.live[i.Subject]++
}

// names returns the names of the rules in force.
func (o *inForce) names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var names []string
	for s := range o.live {
		names = append(names, s.Rule)
	}
	slices.Sort(names)
	return names
}

func tableOf(t *testing.T, p ruleset.Provider, observers ...*core.Observer) (*aspect.Registry[string, int], *aspect.Table[string, int]) {
	t.Helper()
	a := mustAspect(t, newBench(t, core.WithObserver(observers...)).locks)
	r := aspect.NewRegistry(a, topics(a))
	table, err := r.Table(p)
	if err != nil {
		t.Fatal(err)
	}
	return r, table
}

func TestTable_LearnsEndpoints(t *testing.T) {
	t.Parallel()
	seen := &inForce{}
	p := &mutableProvider{set: file(t, rulesOn("k:#{topic}", "paid", "sent")...)}
	r, table := tableOf(t, p, seen.observer())
	if again, err := r.Table(p); err != nil || again != table {
		t.Errorf("the provider has a second table: %v", err)
	}
	if _, known := table.Find("paid"); known || len(seen.names()) > 0 {
		t.Errorf("compiled before the first look-up: %q", seen.names())
	}
	e := table.At("paid")
	if e == nil || e.Err != nil || e.Extra != 4 || table.At("paid") != e {
		t.Errorf("got %+v", e)
	}
	if table.At("free") != nil {
		t.Error("a topic without rules has an entry")
	}
	if got := seen.names(); !slices.Equal(got, []string{"paid"}) {
		t.Errorf("observers were notified of %q", got)
	}
	if got := table.Entries(); len(got) != 1 || got[0] != e {
		t.Errorf("entries: %v", got)
	}
}

func TestTable_Reload(t *testing.T) {
	t.Parallel()
	seen := &inForce{}
	p := &mutableProvider{set: file(t, rulesOn("k:#{topic}", "paid", "sent")...)}
	r, table := tableOf(t, p, seen.observer())
	if err := r.Check("paid", "sent").Err(); err != nil {
		t.Fatal(err)
	}
	before := table.At("paid")
	for want, set := range map[string]*ruleset.Set{
		"unknown name": file(t, rulesOn("k:#{topik}", "paid", "sent")...),
		"matches no":   file(t, rulesOn("k:#{topic}", "paid", "sent", "lost")...),
		"another lock": file(t, rulesOn("other:#{topic}", "paid", "sent")...),
	} {
		err := p.replace(set)
		if err == nil || want != "another lock" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
		if table.At("paid") != before {
			t.Errorf("%s: the refused set is in force", want)
		}
	}
	if err := p.replace(file(t, rulesOn("k:#{topic}", "paid")...)); err != nil {
		t.Fatal(err)
	}
	if table.At("paid") == before || table.At("sent") != nil {
		t.Error("the next set is not in force")
	}
	if got := seen.names(); !slices.Equal(got, []string{"paid"}) {
		t.Errorf("observers were notified of %q", got)
	}
}

// During reloads, all rules of a call come from one set. At the end, the rules in force are exactly the rules
// that observers were notified of.
func TestTable_CallsDuringReloads(t *testing.T) {
	t.Parallel()
	seen := &inForce{}
	const sets = 50
	set := func(n int) *ruleset.Set {
		rules := rulesOn("k:#{topic}", "a", "b", "c")
		for i := range rules {
			rules[i].Message = fmt.Sprint(n)
		}
		return file(t, rules...)
	}
	p := &mutableProvider{set: set(0)}
	_, table := tableOf(t, p, seen.observer())
	stop := make(chan struct{})
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, topic := range []string{"a", "b", "c", "d"} {
					if e := table.At(topic); (e == nil) != (topic == "d") || e != nil && e.Err != nil {
						t.Errorf("%s: got %+v", topic, e)
						return
					}
				}
			}
		})
	}
	for n := range sets {
		if err := p.replace(set(n)); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	calls.Wait()
	for _, topic := range []string{"a", "b", "c"} {
		if got := table.At(topic).Rules()[0].Message; got != fmt.Sprint(sets-1) {
			t.Errorf("%s is under set %s", topic, got)
		}
	}
	if got := seen.names(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("observers were notified of %q", got)
	}
}

// An endpoint that is compiled while a reload is prepared is compiled again under the new set.
func TestTable_RenewDuringAReload(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, newBench(t).locks)
	message := "first"
	adapter := topics(a)
	adapter.Declared = func(topic string) ([]ruleset.Declared, []*ruleset.Problem) {
		return []ruleset.Declared{{Rule: ruleset.Rule{Endpoint: ruleset.Func(topic), Key: "k", Message: message}}}, nil
	}
	p := &hookedProvider{mutableProvider: mutableProvider{set: file(t)}}
	table, err := aspect.NewRegistry(a, adapter).Table(p)
	if err != nil {
		t.Fatal(err)
	}
	table.At("paid")
	p.preparing = func() {
		message = "second"
		if got := table.Renew("paid")[0].Rules()[0].Message; got != "second" {
			t.Errorf("renewed: %q", got)
		}
	}
	if err := p.replace(file(t, rulesOn("k", "sent")...)); err != nil {
		t.Fatal(err)
	}
	if got := table.At("paid").Rules()[0].Message; got != "second" {
		t.Errorf("after the reload: %q", got)
	}
}

// Observers are notified of rules that are added to an endpoint with rules.
func TestTable_RenewNotifiesObservers(t *testing.T) {
	t.Parallel()
	seen := &inForce{}
	a := mustAspect(t, newBench(t, core.WithObserver(seen.observer())).locks)
	name := "first"
	adapter := topics(a)
	adapter.Declared = func(topic string) ([]ruleset.Declared, []*ruleset.Problem) {
		return []ruleset.Declared{{Rule: ruleset.Rule{Endpoint: ruleset.Func(topic), Name: name, Key: "k"}}}, nil
	}
	table, err := aspect.NewRegistry(a, adapter).Table(file(t))
	if err != nil {
		t.Fatal(err)
	}
	table.At("paid")
	name = "second"
	table.Renew("paid")
	if got := seen.names(); len(got) != 1 || got[0] != "second" {
		t.Errorf("observers were notified of %q", got)
	}
}
