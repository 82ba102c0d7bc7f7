package aspect_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// hookedProvider is a provider that runs functions of the test during its calls of a table.
type hookedProvider struct {
	mutableProvider
	subscribing, preparing func()
}

func (p *hookedProvider) Subscribe(prepare ruleset.Prepare) (cancel func(), err error) {
	if p.subscribing != nil {
		p.subscribing()
	}
	return p.mutableProvider.Subscribe(func(set *ruleset.Set) (func(), error) {
		commit, err := prepare(set)
		if p.preparing != nil {
			p.preparing()
		}
		return commit, err
	})
}

// Check ignores a table without a set.
func TestRegistry_CheckDuringSubscribe(t *testing.T) {
	t.Parallel()
	r, _ := tableOf(t, file(t))
	p := &hookedProvider{mutableProvider: mutableProvider{set: file(t)}}
	p.subscribing = func() {
		if err := r.Check("paid").Err(); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Table(p); err != nil {
		t.Error(err)
	}
}

// Two registries lock the same providers in the same order, whichever provider each got first. Otherwise two
// Checks could wait for each other for ever.
func TestRegistry_CheckOrder(t *testing.T) {
	t.Parallel()
	var asked []string
	var providers []*hookedProvider
	for _, name := range []string{"a", "b", "c"} {
		providers = append(providers, &hookedProvider{mutableProvider: mutableProvider{set: file(t)}, subscribing: func() { asked = append(asked, name) }})
	}
	var orders []string
	for first := range providers {
		a := mustAspect(t, offline(t))
		r := aspect.NewRegistry(a, topics(a))
		for i := range providers {
			if _, err := r.Table(providers[(first+i)%len(providers)]); err != nil {
				t.Fatal(err)
			}
		}
		asked = nil
		r.Check()
		orders = append(orders, strings.Join(asked, ""))
	}
	if len(orders[0]) != 3 || orders[1] != orders[0] || orders[2] != orders[0] {
		t.Errorf("the registries subscribed in the orders %q", orders)
	}
}

// Every caller of Table gets a table that has its set, even if several call it at the same time.
func TestRegistry_TableConcurrently(t *testing.T) {
	t.Parallel()
	r, _ := tableOf(t, file(t))
	begun, done := make(chan struct{}), make(chan struct{})
	p := &hookedProvider{mutableProvider: mutableProvider{set: file(t, rulesOn("k", "paid")...)}}
	p.subscribing = func() { close(begun) }
	go func() {
		defer close(done)
		<-begun
		table, err := r.Table(p)
		if err != nil || table.At("paid") == nil {
			t.Errorf("got %v", err)
		}
	}()
	if _, err := r.Table(p); err != nil {
		t.Error(err)
	}
	<-done
}

// A panic of an adapter reaches the caller of Check.
func TestRegistry_CheckPanics(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, newBench(t).locks)
	adapter := topics(a)
	adapter.Compile = func(*ruleset.Set, string, []*ruleset.Resolved) (*aspect.Point, int, error) { panic("compile") }
	r := aspect.NewRegistry(a, adapter)
	live, err := ruleset.Open(writeFile(t, "rules:\n  - {func: paid, key: k}\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if _, err := r.Table(live); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if v := recover(); v != "compile" {
			t.Errorf("got the panic %v", v)
		}
	}()
	r.Check("paid")
}

// writeFile writes a rule file and returns its name.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "locks.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A provider that never calls prepare causes an error, not a panic.
func TestRegistry_ProviderWithoutASet(t *testing.T) {
	t.Parallel()
	r, _ := tableOf(t, file(t))
	table, err := r.Table(silentProvider{file(t)})
	if err == nil || !strings.Contains(err.Error(), "did not call prepare") {
		t.Errorf("got %v", err)
	}
	if table.At("paid") != nil {
		t.Error("the table has a rule")
	}
}

// silentProvider is a provider that accepts subscribers and never calls them.
type silentProvider struct{ *ruleset.Set }

func (silentProvider) Subscribe(ruleset.Prepare) (cancel func(), err error) { return func() {}, nil }

func TestRegistry_JudgesAllTablesTogether(t *testing.T) {
	t.Parallel()
	first := &mutableProvider{set: file(t, rulesOn("k:#{topic}", "paid")...)}
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

// Rules of an endpoint whose calls cannot reach the adapter are errors: rules that name it, and wildcards if a call may
// change something. A reload with such rules is refused, too.
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
	p := &mutableProvider{set: file(t, rulesOn("k:#{topic}", "guarded/paid")...)}
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
	seen := &inForce{}
	r, _ := tableOf(t, file(t), seen.observer())
	e := r.Compile("paid", ruleset.Rule{Key: "k:#{topic}"})
	if e.Err != nil || len(seen.names()) > 0 {
		t.Fatalf("got %v, observers have %q", e.Err, seen.names())
	}
	r.Place(e)
	if got := seen.names(); !slices.Equal(got, []string{"paid"}) || len(r.At("paid")) != 1 {
		t.Errorf("observers have %q, in force is %v", got, r.At("paid"))
	}
	for _, broken := range []*aspect.Entry[int]{r.Compile("none"), r.Compile("bad", ruleset.Rule{Key: "#{x}"})} {
		if broken.Err == nil || broken.Point != nil {
			t.Errorf("%s: got %+v", broken.Endpoint, broken)
		}
	}
}

// A registry checks its sets together with the entries of an included registry, at Check and at a reload. Observers get
// each rule once.
func TestRegistry_Include(t *testing.T) {
	t.Parallel()
	seen := &inForce{}
	p := &mutableProvider{set: file(t)}
	r, _ := tableOf(t, p, seen.observer())
	a := mustAspect(t, offline(t))
	other := aspect.NewRegistry(a, topics(a))
	r.Include(other)
	other.Place(other.Compile("paid", ruleset.Rule{Key: "k:#{topic}"}))
	if err := r.Check("paid", "sent").Err(); err != nil || len(seen.names()) > 0 || len(r.At("paid")) > 0 {
		t.Errorf("got %v, observers have %q, in force is %v", err, seen.names(), r.At("paid"))
	}
	if err := p.replace(file(t, rulesOn("k:#{topic}", "paid")...)); err == nil || !strings.Contains(err.Error(), "is there twice") {
		t.Errorf("a set with the rule of an included entry: got %v", err)
	}
	other.Place(other.Compile("bad", ruleset.Rule{Key: "#{x}"}))
	if err := r.Check().Err(); err == nil || !strings.Contains(err.Error(), "unknown name x") {
		t.Errorf("a broken included entry: got %v", err)
	}
}
