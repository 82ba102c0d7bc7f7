package locktest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/core"
)

// Event is one call of a Recorder.
type Event struct {
	Name string          // "acquire start", "contention", "acquire end", "hold start", "hold end", "renewal", "loss", "leak"
	Ctx  context.Context //nolint:containedctx // that the observer was called with
	Data any
}

// Recorder records the calls of an observer.
type Recorder struct {
	mu     sync.Mutex
	events []Event
}

// Nested is the key of the values that a Recorder adds to contexts: "acquire" and "hold".
type Nested string

// Observer returns an observer with every function but Backend.
func (r *Recorder) Observer() *core.Observer {
	return &core.Observer{
		AcquireStart: r.observeAcquireStart,
		Contention:   r.observeContention,
		AcquireEnd:   r.observeAcquireEnd,
		HoldStart:    r.observeHoldStart,
		HoldEnd:      r.observeHoldEnd,
		Renewal:      r.observeRenewal,
		Loss:         r.ObserveLoss,
		Leak:         r.observeLeak,
	}
}

func (r *Recorder) observeAcquireStart(ctx context.Context, a core.Acquisition) context.Context {
	r.add(ctx, "acquire start", a)
	return context.WithValue(ctx, Nested("acquire"), true)
}

func (r *Recorder) observeContention(ctx context.Context, c core.Contention) {
	r.add(ctx, "contention", c)
}

func (r *Recorder) observeAcquireEnd(ctx context.Context, a core.AcquireResult) {
	r.add(ctx, "acquire end", a)
}

func (r *Recorder) observeHoldStart(ctx context.Context, h core.HoldInfo) context.Context {
	r.add(ctx, "hold start", h)
	return context.WithValue(ctx, Nested("hold"), true)
}

func (r *Recorder) observeHoldEnd(ctx context.Context, h core.HoldResult) { r.add(ctx, "hold end", h) }

func (r *Recorder) observeRenewal(ctx context.Context, n core.Renewal) { r.add(ctx, "renewal", n) }

// ObserveLoss records a loss.
func (r *Recorder) ObserveLoss(ctx context.Context, l core.Loss) { r.add(ctx, "loss", l) }

func (r *Recorder) observeLeak(ctx context.Context, h core.HoldInfo) { r.add(ctx, "leak", h) }

func (r *Recorder) add(ctx context.Context, name string, data any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, Event{name, ctx, data})
}

// Events returns all events so far, in order.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Names returns the names of all events so far, in order.
func (r *Recorder) Names() (names []string) {
	for _, e := range r.Events() {
		names = append(names, e.Name)
	}
	return names
}

// Count returns how many events have a name.
func (r *Recorder) Count(name string) (n int) {
	for _, other := range r.Names() {
		if other == name {
			n++
		}
	}
	return n
}

// First returns the first event of a name.
func (r *Recorder) First(t *testing.T, name string) Event {
	t.Helper()
	return r.one(t, name, slices.All(r.Events()))
}

// Last returns the last event of a name.
func (r *Recorder) Last(t *testing.T, name string) Event {
	t.Helper()
	return r.one(t, name, slices.Backward(r.Events()))
}

func (r *Recorder) one(t *testing.T, name string, events func(yield func(int, Event) bool)) Event {
	t.Helper()
	for _, e := range events {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no %s among the events", name)
	return Event{}
}

// Want compares the names of all events so far.
func (r *Recorder) Want(t *testing.T, names ...string) {
	t.Helper()
	if got := r.Names(); !slices.Equal(got, names) {
		t.Errorf("events:\ngot  %q\nwant %q", got, names)
	}
}

// Outcomes returns the outcomes of all acquisitions so far, in order.
func (r *Recorder) Outcomes() (all []core.Outcome) {
	for _, e := range r.Events() {
		if end, ok := e.Data.(core.AcquireResult); ok {
			all = append(all, end.Outcome)
		}
	}
	return all
}

// BackendRecorder records the changes of the state of Redis of which observers are notified.
type BackendRecorder struct {
	mu     sync.Mutex
	events []core.BackendChange
}

// Observer returns an observer with a function Backend.
func (r *BackendRecorder) Observer() *core.Observer { return &core.Observer{Backend: r.observeBackend} }

func (r *BackendRecorder) observeBackend(_ context.Context, b core.BackendChange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, b)
}

// All returns all changes so far, in order.
func (r *BackendRecorder) All() []core.BackendChange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Renewals counts renewals and keeps the first failure.
type Renewals struct {
	mu    sync.Mutex
	good  int
	first error
}

// Observer returns an observer with a function Renewal.
func (r *Renewals) Observer() *core.Observer { return &core.Observer{Renewal: r.observeRenewal} }

func (r *Renewals) observeRenewal(_ context.Context, one core.Renewal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one.Err == nil {
		r.good++
	} else if r.first == nil {
		r.first = one.Err
	}
}

// Good returns how many renewals succeeded.
func (r *Renewals) Good() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.good
}

// Failure returns the error of the first renewal that failed.
func (r *Renewals) Failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}
