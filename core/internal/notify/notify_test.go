package notify_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/core/internal/notify"
)

// hearing is a function that notes what it hears, and then does what it is given.
func hearing(name string, heard *[]string, then func()) func(string) {
	return func(what string) {
		*heard = append(*heard, name+" "+what)
		if then != nil {
			then()
		}
	}
}

func panicking(what any) func(string) { return func(string) { panic(what) } }

// logged is what do writes to the default logger. Its tests are not parallel: there is
// one default logger.
func logged(t *testing.T, do func()) []string {
	t.Helper()
	var buf bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&buf, nil)))
	defer slog.SetDefault(before)
	do()
	return slices.Collect(strings.Lines(buf.String()))
}

func tell(p *notify.Panics, what string, list ...func(string)) {
	notify.Each(p, list, func(f func(string)) { f(what) })
}

func TestList_Add(t *testing.T) {
	t.Parallel()
	var list notify.List[func(string)]
	list.Add(nil)
	list.Add(func(string) {})
	if len(list) != 1 {
		t.Errorf("got %d functions, want 1: nil is none", len(list))
	}
}

func TestEach_CallsInOrder(t *testing.T) {
	t.Parallel()
	var heard []string
	tell(&notify.Panics{}, "x", hearing("a", &heard, nil), hearing("b", &heard, nil))
	if want := []string{"a x", "b x"}; !slices.Equal(heard, want) {
		t.Errorf("got %q, want %q", heard, want)
	}
	tell(nil, "x") // an empty list needs nothing
}

func TestEach_PanicIsReportedOnceAndTheOthersAreCalled(t *testing.T) { //nolint:paralleltest // see logged
	var heard []string
	var panics notify.Panics
	lines := logged(t, func() {
		for _, what := range []string{"x", "y"} {
			tell(&panics, what, hearing("a", &heard, func() { panic("the key order:42") }), hearing("b", &heard, nil))
		}
	})
	if want := []string{"a x", "b x", "a y", "b y"}; !slices.Equal(heard, want) {
		t.Errorf("got %q, want %q", heard, want)
	}
	if len(lines) != 1 {
		t.Fatalf("logged %q, want one line", lines)
	}
	for _, word := range []string{"level=ERROR", ".hearing.", "panic=string"} {
		if !strings.Contains(lines[0], word) {
			t.Errorf("the line does not say %q: %s", word, lines[0])
		}
	}
	if strings.Contains(lines[0], "order:42") {
		t.Errorf("the line has the value of the panic: %s", lines[0])
	}
}

// Each function is reported by itself, for each Panics: two clients are two.
func TestEach_ReportsEveryFunction(t *testing.T) { //nolint:paralleltest // see logged
	var heard []string
	var mine, theirs notify.Panics
	list := []func(string){hearing("a", &heard, func() { panic(1) }), panicking(errors.New("x")), panicking(nil)}
	lines := logged(t, func() {
		tell(&mine, "x", list...)
		tell(&mine, "y", list...)
		tell(&theirs, "x", list[0])
	})
	if len(lines) != 4 || !strings.Contains(lines[1], ".panicking.") || !strings.Contains(lines[1], "panic=*errors.errorString") {
		t.Errorf("logged %q", lines)
	}
}

func TestEach_IsSafeForConcurrentUse(t *testing.T) { //nolint:paralleltest // see logged
	var panics notify.Panics
	lines := logged(t, func() {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { tell(&panics, "x", panicking("x")) })
		}
		all.Wait()
	})
	if len(lines) != 1 {
		t.Errorf("logged %q, want one line", lines)
	}
}

func TestEach_CostsNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	var panics notify.Panics
	count := 0
	list := []func(){func() { count++ }, func() { count++ }}
	if n := testing.AllocsPerRun(100, func() { notify.Each(&panics, list, func(f func()) { f() }) }); n > 0 {
		t.Errorf("got %.0f allocations, want none", n)
	}
}
