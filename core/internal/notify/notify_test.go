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

type listener interface{ hear(what string) }

// noting notes what it hears, and then does what it is told to.
type noting struct {
	name  string
	heard *[]string
	then  func()
}

func (n noting) hear(what string) {
	*n.heard = append(*n.heard, n.name+" "+what)
	if n.then != nil {
		n.then()
	}
}

// other is a listener of another type.
type other struct{ panicking any }

func (o *other) hear(string) { panic(o.panicking) }

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

func tell(p *notify.Panics, what string, list ...listener) {
	notify.Each(p, list, func(l listener) { l.hear(what) })
}

func TestEach_TellsInOrder(t *testing.T) {
	t.Parallel()
	var heard []string
	tell(&notify.Panics{}, "x", noting{"a", &heard, nil}, noting{"b", &heard, nil})
	if want := []string{"a x", "b x"}; !slices.Equal(heard, want) {
		t.Errorf("got %q, want %q", heard, want)
	}
	tell(nil, "nobody") // a list without observers needs nothing
}

func TestEach_PanicIsReportedOnceAndTheOthersAreTold(t *testing.T) { //nolint:paralleltest // see logged
	var heard []string
	var panics notify.Panics
	lines := logged(t, func() {
		for _, what := range []string{"x", "y"} {
			tell(&panics, what, noting{"a", &heard, func() { panic("the key order:42") }}, noting{"b", &heard, nil})
		}
	})
	if want := []string{"a x", "b x", "a y", "b y"}; !slices.Equal(heard, want) {
		t.Errorf("got %q, want %q", heard, want)
	}
	if len(lines) != 1 {
		t.Fatalf("logged %q, want one line", lines)
	}
	for _, word := range []string{"level=ERROR", "observer=notify_test.noting", "as=notify_test.listener", "panic=string"} {
		if !strings.Contains(lines[0], word) {
			t.Errorf("the line does not say %q: %s", word, lines[0])
		}
	}
	if strings.Contains(lines[0], "order:42") {
		t.Errorf("the line has the value of the panic: %s", lines[0])
	}
}

// Each type is reported by itself, for each that remembers: two clients are two.
func TestEach_ReportsEveryObserver(t *testing.T) { //nolint:paralleltest // see logged
	var heard []string
	var mine, theirs notify.Panics
	list := []listener{noting{"a", &heard, func() { panic(1) }}, &other{errors.New("x")}, &other{nil}}
	lines := logged(t, func() {
		tell(&mine, "x", list...)
		tell(&mine, "y", list...)
		tell(&theirs, "x", list[0])
	})
	if len(lines) != 3 || !strings.Contains(lines[1], "observer=*notify_test.other") || !strings.Contains(lines[1], "panic=*errors.errorString") {
		t.Errorf("logged %q", lines)
	}
}

func TestEach_IsSafeForConcurrentUse(t *testing.T) { //nolint:paralleltest // see logged
	var panics notify.Panics
	lines := logged(t, func() {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { tell(&panics, "x", &other{"x"}) })
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
