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

// recorder returns a function that records its argument and then calls then.
func recorder(name string, recorded *[]string, then func()) func(string) {
	return func(what string) {
		*recorded = append(*recorded, name+" "+what)
		if then != nil {
			then()
		}
	}
}

func panicking(what any) func(string) { return func(string) { panic(what) } }

// logOf returns the lines that do writes to the default logger. Tests that use it are not parallel,
// because there is one default logger.
func logOf(t *testing.T, do func()) []string {
	t.Helper()
	var buf bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&buf, nil)))
	defer slog.SetDefault(before)
	do()
	return slices.Collect(strings.Lines(buf.String()))
}

func notifyAll(p *notify.Panics, what string, list ...func(string)) {
	notify.Each(p, list, func(f func(string)) { f(what) })
}

func TestList_Add(t *testing.T) {
	t.Parallel()
	var list notify.List[func(string)]
	list.Add(nil)
	list.Add(func(string) {})
	if len(list) != 1 {
		t.Errorf("got %d functions, want 1: nil is ignored", len(list))
	}
}

func TestEach_CallsInOrder(t *testing.T) {
	t.Parallel()
	var recorded []string
	notifyAll(&notify.Panics{}, "x", recorder("a", &recorded, nil), recorder("b", &recorded, nil))
	if want := []string{"a x", "b x"}; !slices.Equal(recorded, want) {
		t.Errorf("got %q, want %q", recorded, want)
	}
	notifyAll(nil, "x") // an empty list needs no Panics
}

func TestEach_Panic(t *testing.T) { //nolint:paralleltest // see logOf
	var recorded []string
	var panics notify.Panics
	lines := logOf(t, func() {
		for _, what := range []string{"x", "y"} {
			notifyAll(&panics, what, recorder("a", &recorded, func() { panic("the key order:42") }), recorder("b", &recorded, nil))
		}
	})
	if want := []string{"a x", "b x", "a y", "b y"}; !slices.Equal(recorded, want) {
		t.Errorf("got %q, want %q", recorded, want)
	}
	if len(lines) != 1 {
		t.Fatalf("logged %q, want one line", lines)
	}
	for _, word := range []string{"level=ERROR", ".recorder.", "panic=string"} {
		if !strings.Contains(lines[0], word) {
			t.Errorf("the line does not contain %q: %s", word, lines[0])
		}
	}
	if strings.Contains(lines[0], "order:42") {
		t.Errorf("the line has the value of the panic: %s", lines[0])
	}
}

// Each Panics reports each function once. Two clients have separate Panics.
func TestEach_PanicsOfSeveralFunctions(t *testing.T) { //nolint:paralleltest // see logOf
	var recorded []string
	var mine, theirs notify.Panics
	list := []func(string){recorder("a", &recorded, func() { panic(1) }), panicking(errors.New("x")), func(string) { panic(true) }}
	lines := logOf(t, func() {
		notifyAll(&mine, "x", list...)
		notifyAll(&mine, "y", list...)
		notifyAll(&theirs, "x", list[0])
	})
	if len(lines) != 4 || !strings.Contains(lines[1], ".panicking.") || !strings.Contains(lines[1], "panic=*errors.errorString") {
		t.Errorf("logged %q", lines)
	}
}

func TestEach_Concurrent(t *testing.T) { //nolint:paralleltest // see logOf
	var panics notify.Panics
	lines := logOf(t, func() {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { notifyAll(&panics, "x", panicking("x")) })
		}
		all.Wait()
	})
	if len(lines) != 1 {
		t.Errorf("logged %q, want one line", lines)
	}
}

func TestEach_Allocations(t *testing.T) {
	var panics notify.Panics
	count := 0
	list := []func(){func() { count++ }, func() { count++ }}
	if n := testing.AllocsPerRun(100, func() { notify.Each(&panics, list, func(f func()) { f() }) }); n > 0 {
		t.Errorf("got %.0f allocations, want none", n)
	}
}
