package aspect_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// A Lock whose handlers were all dropped warns, unless one was used or the client is closed.
func TestReturned(t *testing.T) {
	t.Parallel()
	warned := make(chan string, 10)
	observer := &core.Observer{Rules: &aspect.Observer{Warning: func(p *ruleset.Problem) { warned <- p.Message }}}
	a := mustAspect(t, newBench(t, core.WithObserver(observer)).locks)
	closed := newBench(t, core.WithObserver(observer)).locks
	afterClose := mustAspect(t, closed)
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var used, kept, dropped, late aspect.Returned
	problem := func(text string) *ruleset.Problem { return &ruleset.Problem{Message: text} }
	used.Watch(a, problem("used")).Use()
	used.Watch(a, problem("used"))
	late.Watch(afterClose, problem("after Close"))
	keep := kept.Watch(a, problem("kept"))
	kept.Watch(a, problem("kept"))
	dropped.Watch(a, problem("dropped"))
	dropped.Watch(a, problem("dropped"))
	got := collect(t, warned)
	if got != "dropped" {
		t.Errorf("got the warning %q", got)
	}
	runtime.KeepAlive(keep)
	select {
	case more := <-warned:
		t.Errorf("got the warning %q, too", more)
	default:
	}
}

// collect collects garbage until there is a warning.
func collect(t *testing.T, warned <-chan string) string {
	t.Helper()
	timeout := time.NewTimer(5 * time.Minute) // for a test that fails
	defer timeout.Stop()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		runtime.GC()
		select {
		case text := <-warned:
			return text
		case <-again.C:
		case <-timeout.C:
			t.Fatal("no warning")
		}
	}
}
