// Package notify calls the functions of observers. Observers are code of the application that runs during
// an acquire or a release. A panic of an observer must neither keep nor free a lock, and no caller can
// recover it. So notify recovers it and logs it once.
//
// The package handles functions and panics. It does not depend on the types of events. Packages core,
// core/aspect and core/ruleset call it.
package notify

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"sync"
)

// Panics remembers the functions that panicked, so that each is reported once: a broken function
// may be called for every request. The zero value is ready to use. Panics must not be copied. It is
// safe for concurrent use.
type Panics struct{ reported sync.Map } // from the pointer to the code of a function to true

// Event holds the functions that receive one type of event, in the order of Add. The zero value holds
// none.
type Event[T any] struct {
	list   List[func(context.Context, T)]
	panics *Panics
}

// Add adds a function unless it is nil.
func (e *Event[T]) Add(p *Panics, f func(context.Context, T)) {
	e.list.Add(f)
	e.panics = p
}

// Observed reports whether the event has functions.
func (e *Event[T]) Observed() bool { return len(e.list) > 0 }

// Notify passes an event to every function.
func (e *Event[T]) Notify(ctx context.Context, v T) {
	Each(e.panics, e.list, func(f func(context.Context, T)) { f(ctx, v) })
}

// List holds the functions for one event, in the order of Add.
type List[F any] []F

// Add adds a function unless it is nil.
func (l *List[F]) Add(f F) {
	if !reflect.ValueOf(f).IsNil() {
		*l = append(*l, f)
	}
}

// Each calls call for every function of the list, in order. It logs the first panic of a function to
// [slog.Default] and continues with the next function.
func Each[F any](p *Panics, list []F, call func(F)) {
	for _, f := range list {
		callOne(p, f, call)
	}
}

func callOne[F any](p *Panics, f F, call func(F)) {
	defer func() {
		if v := recover(); v != nil {
			p.report(reflect.ValueOf(f).Pointer(), v)
		}
	}()
	call(f)
}

// report logs the first panic of a function. It logs only the type of the panic, because the value may
// contain a key or data of a client.
func (p *Panics) report(code uintptr, v any) {
	if _, known := p.reported.LoadOrStore(code, true); known {
		return
	}
	slog.Error("locks: an observer has panicked; the lock is not affected, and this is the only report of it",
		slog.String("observer", runtime.FuncForPC(code).Name()),
		slog.String("panic", fmt.Sprintf("%T", v)))
}
