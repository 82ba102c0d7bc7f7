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

// topics is an adapter of topics, which are functions here; X is their length.
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

// rulesOn are rules for topics, with a template for all.
func rulesOn(key string, names ...string) []ruleset.Rule {
	var rules []ruleset.Rule
	for _, name := range names {
		rules = append(rules, ruleset.Rule{Endpoint: ruleset.Func(name), Key: key})
	}
	return rules
}

// told keeps which rules are in force, as observers are told.
type told struct {
	mu   sync.Mutex
	live map[aspect.Subject]int
}

func (o *told) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Rule: o.observeRule}}
}

func (o *told) observeRule(i aspect.RuleInfo) {
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

// names are the rules in force.
func (o *told) names() []string {
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

func TestTable_LearnsWhatIsAsked(t *testing.T) {
	t.Parallel()
	seen := &told{}
	p := &replaceable{set: file(t, rulesOn("k:#{topic}", "paid", "sent")...)}
	r, table := tableOf(t, p, seen.observer())
	if again, err := r.Table(p); err != nil || again != table {
		t.Errorf("another table of one provider: %v", err)
	}
	if _, known := table.Find("paid"); known || len(seen.names()) > 0 {
		t.Errorf("compiled before anybody asked: %q", seen.names())
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

func TestTable_ReloadReplacesAllOrNothing(t *testing.T) {
	t.Parallel()
	seen := &told{}
	p := &replaceable{set: file(t, rulesOn("k:#{topic}", "paid", "sent")...)}
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

func TestRegistry_JudgesAllTablesTogether(t *testing.T) {
	t.Parallel()
	first := &replaceable{set: file(t, rulesOn("k:#{topic}", "paid")...)}
	r, _ := tableOf(t, first)
	if _, err := r.Table(file(t, append(rulesOn("k:#{topic}", "paid"), rulesOn("c", "sent")...)...)); err != nil {
		t.Fatal(err)
	}
	report := r.Check("paid", "sent", "free")
	if err := report.Err(); err == nil || !strings.Contains(err.Error(), `a rule "paid" is there twice`) {
		t.Errorf("got %v", err)
	}
	if w := report.Warnings(); len(w) != 0 {
		t.Errorf("warnings: %v", w)
	}
}

// Rules of an endpoint whose calls cannot come to the adapter are errors: those that name it,
// and rules of wildcards where a call may change something. They are refused in a reload, too.
func TestRegistry_Unguarded(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, newBench(t).locks)
	adapter := topics(a)
	adapter.Changes = func(topic string) bool { return !strings.HasSuffix(topic, "/read") }
	adapter.Unguarded = func(_ ruleset.Provider, topic string) string {
		if strings.HasPrefix(topic, "guarded") {
			return ""
		}
		return "it is not subscribed: call Subscribe"
	}
	p := &replaceable{set: file(t, rulesOn("k:#{topic}", "guarded/paid")...)}
	r := aspect.NewRegistry(a, adapter)
	if _, err := r.Table(p); err != nil {
		t.Fatal(err)
	}
	if err := r.Check("guarded/paid", "paid", "open/paid", "open/read").Err(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"paid": "rule of func paid", "open/*": "open/paid", "open/read": "rule of func open/read",
	} {
		set := file(t, rulesOn("k:#{topic}", "guarded/paid", name)...)
		err := p.replace(set)
		if err == nil || !strings.Contains(err.Error(), want+": it is not subscribed: call Subscribe") || name == "open/*" && strings.Contains(err.Error(), "open/read") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRegistry_PlacedBesideSets(t *testing.T) {
	t.Parallel()
	seen := &told{}
	r, _ := tableOf(t, file(t), seen.observer())
	e := r.Compile("paid", ruleset.Rule{Key: "k:#{topic}"})
	if e.Err != nil || len(seen.names()) > 0 {
		t.Fatalf("got %v, told %q", e.Err, seen.names())
	}
	r.Place(e)
	if got := seen.names(); !slices.Equal(got, []string{"paid"}) || len(r.At("paid")) != 1 {
		t.Errorf("told %q, in force %v", got, r.At("paid"))
	}
	for _, broken := range []*aspect.Entry[int]{r.Compile("none"), r.Compile("bad", ruleset.Rule{Key: "#{x}"})} {
		if broken.Err == nil || broken.Point != nil {
			t.Errorf("%s: got %+v", broken.Endpoint, broken)
		}
	}
}

// Under reloads every call finds rules of one set, and in the end observers know those
// in force.
func TestTable_UnderReloads(t *testing.T) {
	t.Parallel()
	seen := &told{}
	const sets = 50
	set := func(n int) *ruleset.Set {
		rules := rulesOn("k:#{topic}", "a", "b", "c")
		for i := range rules {
			rules[i].Message = fmt.Sprint(n)
		}
		return file(t, rules...)
	}
	p := &replaceable{set: set(0)}
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
