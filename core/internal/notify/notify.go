// Package notify tells observers what happened. They are somebody else's code, called in
// the middle of an acquisition or a release: a panic in one of them must neither keep nor
// free a lock, and there is nobody to return it to.
package notify

import (
	"fmt"
	"log/slog"
	"reflect"
	"sync"
)

// Panics remembers which observers have panicked, so that each is reported once: a broken
// one may be notified of every call. The zero value is ready. Do not copy it. It is safe for
// concurrent use.
type Panics struct{ reported sync.Map } // reflect.Type of the observer -> true

// List is the observers that implement an interface, in the order in which they were given.
type List[O any] []O

// Add adds an observer, and reports whether it implements the interface.
func (l *List[O]) Add(v any) bool {
	observer, is := v.(O)
	if is {
		*l = append(*l, observer)
	}
	return is
}

// Each tells every observer of the list, in order. One that panics is reported to
// [slog.Default], and the others are still notified.
func Each[O any](p *Panics, list []O, tell func(O)) {
	for _, observer := range list {
		one(p, observer, tell)
	}
}

func one[O any](p *Panics, observer O, tell func(O)) {
	defer func() {
		if v := recover(); v != nil {
			p.report(observer, reflect.TypeFor[O](), v)
		}
	}()
	tell(observer)
}

// report logs the first panic of an observer. The value may name a key or what a client
// sent; its type says enough to find the place.
func (p *Panics) report(observer any, role reflect.Type, v any) {
	if _, known := p.reported.LoadOrStore(reflect.TypeOf(observer), true); known {
		return
	}
	slog.Error("locks: an observer has panicked; the lock is not affected, and this is the only report of it",
		slog.String("observer", reflect.TypeOf(observer).String()),
		slog.String("as", role.String()),
		slog.String("panic", fmt.Sprintf("%T", v)))
}
