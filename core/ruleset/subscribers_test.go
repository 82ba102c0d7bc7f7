package ruleset_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

// adapter is a subscriber that records its calls.
type adapter struct {
	live      *ruleset.Live
	err       error
	panics    string // "prepare" or "commit"
	onPrepare func()
	onCommit  func()

	calls []string
	set   *ruleset.Set // the set that was committed
}

func (a *adapter) prepare(next *ruleset.Set) (func(), error) {
	a.calls = append(a.calls, "prepare")
	if a.onPrepare != nil {
		a.onPrepare()
	}
	if a.panics == "prepare" {
		panic("no good")
	}
	return func() { a.commit(next) }, a.err
}

func (a *adapter) commit(next *ruleset.Set) {
	if a.live.Current() == next {
		a.calls = append(a.calls, "commit")
	} else {
		a.calls = append(a.calls, "commit before the swap")
	}
	if a.onCommit != nil {
		a.onCommit()
	}
	if a.panics == "commit" {
		panic("no good")
	}
	a.set = next
}

// subscribe subscribes, and removes the calls of the subscription.
func subscribe(t *testing.T, l *ruleset.Live, a *adapter) (cancel func()) {
	t.Helper()
	cancel, err := l.Subscribe(a.prepare)
	if err != nil {
		t.Fatal(err)
	}
	wantCalls(t, a, "prepare", "commit")
	return cancel
}

func wantCalls(t *testing.T, a *adapter, want ...string) {
	t.Helper()
	if !slices.Equal(a.calls, want) {
		t.Errorf("got calls %q, want %q", a.calls, want)
	}
	a.calls = nil
}

func TestLive_Subscribe_AllOrNone(t *testing.T) {
	t.Parallel()
	l, _ := openLive(t, fileWith(t, keyed("a")))
	first := l.Current()
	a, b, c := &adapter{live: l}, &adapter{live: l}, &adapter{live: l}
	for _, one := range []*adapter{a, b, c} {
		subscribe(t, l, one)
		if one.set != first {
			t.Error("a new subscriber did not get the set in force")
		}
	}

	b.err, c.panics = errors.New("route is gone"), "prepare"
	err := l.Reload()
	if !errors.Is(err, b.err) || !strings.Contains(err.Error(), "no good") {
		t.Errorf("got %v, want the errors of both", err)
	}
	if l.Current() != first {
		t.Error("a refused set is in force")
	}
	for _, one := range []*adapter{a, b, c} {
		wantCalls(t, one, "prepare")
	}

	b.err, c.panics = nil, ""
	if err := l.Reload(); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*adapter{a, b, c} {
		wantCalls(t, one, "prepare", "commit")
		if one.set != l.Current() {
			t.Error("committed another set than the set in force")
		}
	}
}

// A mistake in a key also changes the lock. Reload reports only the subscriber's error and not the changed
// lock.
func TestLive_Reload_SubscriberErrorBeforeRekey(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	l, _ := openLive(t, path)
	first := l.Current()
	a := &adapter{live: l}
	subscribe(t, l, a)
	rulesettest.Write(t, path, keyed("b"))
	for _, wrong := range []error{errors.New("no such field"), nil} {
		a.err = wrong
		err := l.Reload()
		if isRekey := err != nil && strings.Contains(err.Error(), "keys: "); isRekey != (wrong == nil) || !errors.Is(err, wrong) && wrong != nil {
			t.Errorf("the subscriber says %v: got %v", wrong, err)
		}
		wantCalls(t, a, "prepare")
	}
	if l.Current() != first {
		t.Error("a rule with another lock came into force")
	}
}

func TestLive_Subscribe_PanicInCommit(t *testing.T) {
	t.Parallel()
	l, seen := openLive(t, fileWith(t, keyed("a")))
	a, b := &adapter{live: l}, &adapter{live: l}
	subscribe(t, l, a)
	subscribe(t, l, b)
	a.panics = "commit"
	if err := l.Reload(); err == nil || !strings.Contains(err.Error(), "in force elsewhere") {
		t.Errorf("got %v", err)
	}
	wantCalls(t, b, "prepare", "commit")
	if r := seen.next(t); r.Set != b.set || r.Err == nil {
		t.Errorf("observed %+v", r)
	}
}

func TestLive_Subscribe_Cancel(t *testing.T) {
	t.Parallel()
	l, _ := openLive(t, fileWith(t, keyed("a")))
	a, b, c := &adapter{live: l}, &adapter{live: l}, &adapter{live: l}
	cancelA := subscribe(t, l, a)
	cancelB := subscribe(t, l, b)
	cancelC := subscribe(t, l, c)

	a.err = errors.New("of no interest")
	a.onPrepare = func() { cancelA(); cancelB() } // cancels its subscription, and the subscription of b before the call of b
	c.onPrepare = func() {}
	if err := l.Reload(); err != nil {
		t.Errorf("the error of a cancelled subscriber counts: %v", err)
	}
	wantCalls(t, a, "prepare")
	wantCalls(t, b)
	wantCalls(t, c, "prepare", "commit")

	c.onPrepare = cancelC
	cancelA() // again
	if err := l.Reload(); err != nil {
		t.Error(err)
	}
	if err := l.Reload(); err != nil {
		t.Error(err)
	}
	wantCalls(t, a)
	wantCalls(t, c, "prepare")

	d, e := &adapter{live: l}, &adapter{live: l}
	cancelD, cancelE := subscribe(t, l, d), subscribe(t, l, e)
	d.onCommit = func() { cancelD(); cancelE() }
	if err := l.Reload(); err != nil {
		t.Error(err)
	}
	wantCalls(t, d, "prepare", "commit")
	wantCalls(t, e, "prepare")
}

func TestLive_Subscribe_Fails(t *testing.T) {
	t.Parallel()
	l, _ := openLive(t, fileWith(t, keyed("a")))
	for name, a := range map[string]*adapter{
		"error":           {live: l, err: errors.New("no such handler")},
		"panic":           {live: l, panics: "prepare"},
		"panic in commit": {live: l, panics: "commit"},
	} {
		cancel, err := l.Subscribe(a.prepare)
		if cancel != nil || err == nil || !errors.Is(err, a.err) && a.err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		a.calls, a.err, a.panics = nil, nil, ""
		if err := l.Reload(); err != nil {
			t.Error(err)
		}
		wantCalls(t, a)
	}
}

// No reload comes between the first call of a subscriber and its subscription, and calls never overlap. The
// set that was committed last is in force.
func TestLive_Subscribe_DuringReloads(t *testing.T) {
	t.Parallel()
	l, _ := openLive(t, fileWith(t, keyed("a")))
	var running sync.WaitGroup
	calls := 0 // of all subscribers; the race detector watches it
	for range 200 {
		running.Go(func() { l.Reload() })
		var committed *ruleset.Set
		cancel, err := l.Subscribe(func(next *ruleset.Set) (func(), error) {
			calls++
			return func() { committed = next }, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { l.Reload() })
		running.Wait()
		if committed != l.Current() {
			t.Fatal("the subscriber uses another set than the set in force")
		}
		cancel()
	}
}
