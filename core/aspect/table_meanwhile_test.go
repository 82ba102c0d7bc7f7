package aspect_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// meanwhile is a provider during whose calls of a table something else happens.
type meanwhile struct {
	replaceable
	subscribing, preparing func()
}

func (p *meanwhile) Subscribe(prepare ruleset.Prepare) (cancel func(), err error) {
	if p.subscribing != nil {
		p.subscribing()
	}
	return p.replaceable.Subscribe(func(set *ruleset.Set) (func(), error) {
		commit, err := prepare(set)
		if p.preparing != nil {
			p.preparing()
		}
		return commit, err
	})
}

// A table that has no set yet is nobody's business.
func TestRegistry_CheckWhileATableBegins(t *testing.T) {
	t.Parallel()
	r, _ := tableOf(t, file(t))
	p := &meanwhile{replaceable: replaceable{set: file(t)}}
	p.subscribing = func() {
		if err := r.Check("paid").Err(); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Table(p); err != nil {
		t.Error(err)
	}
}

// Two registries that follow the same providers come to them in one order, whichever they
// were given first: else two Checks would wait for each other.
func TestRegistry_ChecksInOneOrder(t *testing.T) {
	t.Parallel()
	var asked []string
	var providers []*meanwhile
	for _, name := range []string{"a", "b", "c"} {
		providers = append(providers, &meanwhile{replaceable: replaceable{set: file(t)}, subscribing: func() { asked = append(asked, name) }})
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
		t.Errorf("the registries asked in the orders %q", orders)
	}
}

// Whoever asks for a table has one that has its set, however many ask at a time.
func TestRegistry_TableIsAskedForTwiceAtOnce(t *testing.T) {
	t.Parallel()
	r, _ := tableOf(t, file(t))
	begun, done := make(chan struct{}), make(chan struct{})
	p := &meanwhile{replaceable: replaceable{set: file(t, rulesOn("k", "paid")...)}}
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

// What is compiled while a reload is prepared is not kept under the set that it was
// compiled for, nor lost.
func TestTable_RenewedWhileAReloadIsPrepared(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, newBench(t).locks)
	message := "first"
	adapter := topics(a)
	adapter.Declared = func(topic string) ([]ruleset.Declared, []*ruleset.Problem) {
		return []ruleset.Declared{{Rule: ruleset.Rule{Endpoint: ruleset.Func(topic), Key: "k", Message: message}}}, nil
	}
	p := &meanwhile{replaceable: replaceable{set: file(t)}}
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

// Observers know what is in force after rules were put on an endpoint that had some.
func TestTable_RenewTellsObservers(t *testing.T) {
	t.Parallel()
	seen := &told{}
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

// A panic of an adapter in Check comes to who called it.
func TestRegistry_CheckPanics(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, newBench(t).locks)
	adapter := topics(a)
	adapter.Compile = func(*ruleset.Set, string, []*ruleset.Resolved) (*aspect.Point, int, error) { panic("compile") }
	r := aspect.NewRegistry(a, adapter)
	live, err := ruleset.Open(written(t, "rules:\n  - {func: paid, key: k}\n"))
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

// A function that is wrapped while a reload is prepared, whose new rules cannot work with
// it, refuses its calls.
func TestWrap_WhileAReloadIsPrepared(t *testing.T) {
	t.Parallel()
	p := &meanwhile{replaceable: replaceable{set: file(t)}}
	a := mustAspect(t, newBench(t).locks, aspect.WithSet(p))
	var fn func(context.Context, order) (string, error)
	p.preparing = func() {
		fn = mustWrap(t, a, ruleset.Rule{Endpoint: payFunc, Key: "order:#{in.ID}"}, func(context.Context, order) (string, error) {
			t.Error("the function runs")
			return "", nil
		})
	}
	if err := p.replace(file(t, ruleset.Rule{Endpoint: payFunc, Key: "order:#{in.Nothing}"})); err != nil {
		t.Fatal(err)
	}
	_, err := fn(t.Context(), order{ID: "42"})
	if refused, ok := errors.AsType[*aspect.RefusedError](err); !ok || refused.Message == "" {
		t.Errorf("got %v", err)
	}
}

// written is a rule file with a text.
func written(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "locks.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// What cannot work never enters a table: a reload beside it is of rules that can.
func TestWrap_ThatFailsIsNoReasonToRefuseAReload(t *testing.T) {
	t.Parallel()
	p := &replaceable{set: file(t)}
	a := mustAspect(t, offline(t), aspect.WithSet(p))
	stop := make(chan struct{})
	var wraps sync.WaitGroup
	for range 3 {
		wraps.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				nothing := func(context.Context, string) (int, error) { return 0, nil }
				if _, err := aspect.Wrap(a, ruleset.Rule{Name: "bad", Key: "x:#{in.Nope}"}, nothing); err == nil {
					t.Error("the rule reads a field that there is not")
				}
			}
		})
	}
	for range 300 {
		if err := p.replace(file(t)); err != nil {
			t.Errorf("a good set is refused: %v", err)
			break
		}
	}
	close(stop)
	wraps.Wait()
}

// A provider that never gives its set is a mistake, and not a panic.
func TestRegistry_ProviderWithoutASet(t *testing.T) {
	t.Parallel()
	r, _ := tableOf(t, file(t))
	table, err := r.Table(silent{file(t)})
	if err == nil || !strings.Contains(err.Error(), "did not call prepare") {
		t.Errorf("got %v", err)
	}
	if table.At("paid") != nil {
		t.Error("a rule from nowhere")
	}
}

// silent is a provider that takes subscribers and never calls them.
type silent struct{ *ruleset.Set }

func (silent) Subscribe(ruleset.Prepare) (cancel func(), err error) { return func() {}, nil }
