// Package notify calls the functions of observers. They are code of the program that uses locks, and run in the
// middle of an acquisition or a release: a panic in one of them must neither keep nor
// free a lock, and no caller could receive it.
package notify

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"sync"
)

// Panics remembers which functions have panicked, so that each is reported once: a broken
// one may be called for every request. The zero value is ready. Do not copy it. It is safe for
// concurrent use.
type Panics struct{ reported sync.Map } // pointer to the code of the function -> true

// Event holds the functions of observers that one kind of event is passed to, in the order in which they were given. The
// zero value has none.
type Event[T any] struct {
	list   List[func(context.Context, T)]
	panics *Panics
}

// Add adds a function unless it is nil.
func (e *Event[T]) Add(p *Panics, f func(context.Context, T)) {
	e.list.Add(f)
	e.panics = p
}

// Observed reports whether there are functions.
func (e *Event[T]) Observed() bool { return len(e.list) > 0 }

// Notify passes an event to every function.
func (e *Event[T]) Notify(ctx context.Context, v T) {
	Each(e.panics, e.list, func(f func(context.Context, T)) { f(ctx, v) })
}

// List holds the functions of observers for one event, in the order in which they were given.
type List[F any] []F

// Add adds a function unless it is nil.
func (l *List[F]) Add(f F) {
	if !reflect.ValueOf(f).IsNil() {
		*l = append(*l, f)
	}
}

// Each passes every function of the list to call, in order. One that panics is reported to
// [slog.Default], and the others are still called.
func Each[F any](p *Panics, list []F, call func(F)) {
	for _, f := range list {
		one(p, f, call)
	}
}

func one[F any](p *Panics, f F, call func(F)) {
	defer func() {
		if v := recover(); v != nil {
			p.report(reflect.ValueOf(f).Pointer(), v)
		}
	}()
	call(f)
}

// report logs the first panic of a function. The value may name a key or what a client
// sent; its type says enough to find the place.
func (p *Panics) report(code uintptr, v any) {
	if _, known := p.reported.LoadOrStore(code, true); known {
		return
	}
	slog.Error("locks: an observer has panicked; the lock is not affected, and this is the only report of it",
		slog.String("observer", runtime.FuncForPC(code).Name()),
		slog.String("panic", fmt.Sprintf("%T", v)))
}
