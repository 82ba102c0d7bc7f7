package adaptertest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

const prefix = "vault:"

// bench is one program under test, with a Redis and a lock client.
type bench struct {
	t       testing.TB
	adapter Adapter
	redis   *redistest.Server
	locks   *core.Client
	program Program
	server  Server
	ran     atomic.Int32 // the number of runs of the handler
	queued  atomic.Int32 // the number of runs of the fallback
	cause   atomic.Value // the cause that the fallback got
	warned  warnings     // the warnings that observers got
}

// newBench returns a program whose handler answers "paid" and whose fallback answers "queued".
func newBench(t testing.TB, a Adapter, opts ...core.Option) *bench {
	t.Helper()
	b := &bench{t: t, adapter: a, redis: redistest.New(t)}
	// On a busy machine an answer of Redis may take long. A lock that no call releases must not expire during a test.
	usual := []core.Option{core.WithPrefix(prefix), core.WithBackendTimeout(time.Minute), core.WithWatchdog(time.Hour), core.WithObserver(b.warned.observer())}
	locks, err := core.New(b.redis.Client(), append(usual, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	b.locks = locks
	t.Cleanup(func() {
		b.redis.Up()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if t.Failed() {
			cancel() // Close would wait for a lock that no call released
		}
		if err := locks.Close(ctx); err != nil && !errors.Is(err, core.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
	b.program = Program{
		Locks: locks, Set: b.newSet(nil),
		Pay: func(context.Context, string) (string, error) { return "paid", nil },
		Queue: func(ctx context.Context, _ string) (string, error) {
			b.queued.Add(1)
			o, _ := aspect.OutcomeFrom(ctx)
			b.cause.Store(o.Cause)
			if _, held := core.Held(ctx, "order:42"); held || b.server.Hold(ctx) != nil || ctx.Err() != nil {
				b.t.Errorf("the fallback holds a lock, or its context is canceled: %v", ctx.Err())
			}
			return "queued", nil
		},
	}
	return b
}

// rule returns a rule for the order of a call. It does not wait.
func (b *bench) rule(change ...func(*ruleset.Rule)) ruleset.Rule {
	r := ruleset.Rule{Endpoint: b.adapter.Endpoint, Key: "order:#{" + b.adapter.ID + "}", WaitTime: ruleset.NoWait}
	for _, do := range change {
		do(&r)
	}
	return r
}

// handler replaces the handler of the program.
func (b *bench) handler(pay func(ctx context.Context) (string, error)) {
	b.program.Pay = func(ctx context.Context, _ string) (string, error) { return pay(ctx) }
}

// serveUnder serves the program under a set of rules in Go.
func (b *bench) serveUnder(rules ...ruleset.Rule) {
	b.t.Helper()
	b.program.Set = b.newSet(rules)
	b.start()
}

func (b *bench) newSet(rules []ruleset.Rule, opts ...ruleset.Option) *ruleset.Set {
	b.t.Helper()
	set, err := ruleset.NewSet(rules, opts...)
	if err != nil {
		b.t.Fatal(err)
	}
	return set
}

// start serves the program and fails the test if Check finds a problem.
func (b *bench) start() {
	b.t.Helper()
	if err := b.serve(); err != nil {
		b.t.Fatal(err)
	}
	if err := b.server.Check(); err != nil {
		b.t.Fatalf("Check: %v", err)
	}
}

// serve serves the program without calling Check.
func (b *bench) serve() error {
	b.t.Helper()
	pay := b.program.Pay
	b.program.Pay = func(ctx context.Context, id string) (string, error) {
		b.ran.Add(1)
		return pay(ctx, id)
	}
	server, err := b.adapter.Start(b.t, &b.program)
	if err == nil {
		if incomplete := server.check(); incomplete != nil {
			b.t.Fatal(incomplete)
		}
	}
	b.server = server
	return err
}

// call calls the endpoint for order 42 of a tenant. It fails the test if the answer contains a string that no client may
// see.
func (b *bench) call() Answer {
	b.t.Helper()
	return b.send(b.t.Context(), Call{ID: "42", Tenant: "acme"})
}

func (b *bench) send(ctx context.Context, c Call) Answer {
	b.t.Helper()
	got := b.server.Call(ctx, c)
	for _, secret := range []string{prefix, "order:", b.locks.ID(), "redis", "Redis", "WRONGTYPE", "Operation against", "dial", "core:", "keyexpr", "EVAL", "#{"} {
		if strings.Contains(got.All, secret) {
			b.t.Errorf("the answer contains %q:\n%s", secret, got.All)
		}
	}
	return got
}

// wantRefused checks that got is the refusal for a cause.
func (b *bench) wantRefused(got Answer, cause failpolicy.Cause) {
	b.t.Helper()
	if want := b.adapter.Code(cause.Status()); got.OK || got.Code != want {
		b.t.Errorf("got %+v, want code %d for %s", got, want, cause)
	}
	if !strings.Contains(got.Cause, cause.Reason()) && got.Cause != cause.Type() {
		b.t.Errorf("the answer has cause %q, want %s", got.Cause, cause)
	}
}

// wantOK checks that got is a success with the given text and lock status.
func (b *bench) wantOK(got Answer, text, lock string) {
	b.t.Helper()
	if !got.OK || got.Text != text || got.Lock != lock {
		b.t.Errorf("got %+v, want %q with lock status %q", got, text, lock)
	}
}

// wantRan checks the number of runs of the handler.
func (b *bench) wantRan(want int32) {
	b.t.Helper()
	if got := b.ran.Load(); got != want {
		b.t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// isTaken reports whether a holder has the lock of order 42.
func (b *bench) isTaken() bool {
	b.t.Helper()
	state, err := b.locks.Lock("order:42").State(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return len(state.Holders) > 0
}

// wantFree waits until the lock is free, because a client may read an answer before the guard releases the lock.
func (b *bench) wantFree(t *testing.T) {
	t.Helper()
	awaitEvent(t, "the release", func() bool { return !b.isTaken() && b.locks.Stats().Holds == 0 })
}

// other returns a rule for an endpoint that does not exist, with a similar name.
func (b *bench) other() ruleset.Rule {
	return b.rule(func(r *ruleset.Rule) { r.Endpoint.Path += "s" })
}

func (b *bench) set(rule ruleset.Rule, opts ...ruleset.Option) {
	b.t.Helper()
	b.program.Set = b.newSet([]ruleset.Rule{rule}, opts...)
}

// load returns a set from a rule file with one rule.
func (b *bench) load(r ruleset.Rule, opts ...ruleset.Option) *ruleset.Set {
	b.t.Helper()
	return b.loadText(formatRuleFile(r), opts...)
}

func (b *bench) loadText(text string, opts ...ruleset.Option) *ruleset.Set {
	b.t.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(text), opts...)
	if err != nil {
		b.t.Fatal(err)
	}
	return set
}

// awaitEvent returns when happened returns true. what names the event in the failure message.
func awaitEvent(t testing.TB, what string, happened func() bool) {
	t.Helper()
	ctx, cancel := testContext(t)
	defer cancel()
	for !happened() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: it did not happen", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// testContext returns a context that ends a little before the time limit of go test, which would kill the tests without a
// message.
func testContext(t testing.TB) (context.Context, context.CancelFunc) {
	if limited, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := limited.Deadline(); ok {
			return context.WithDeadline(t.Context(), end.Add(-time.Until(end)/10))
		}
	}
	return context.WithCancel(t.Context())
}

// warnings records the warnings that an observer gets.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) observer() *core.Observer {
	return &core.Observer{
		Backend: func(context.Context, core.BackendChange) {}, // the tests do not log outages and reloads
		Rules:   &aspect.Observer{Warning: w.observeWarning, Reload: func(ruleset.Reload) {}, Decision: recordLock},
	}
}

func (w *warnings) observeWarning(p *ruleset.Problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, p.Error())
}

func (w *warnings) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

// wantText fails the test unless an error contains all parts.
func wantText(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want an error that contains %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not contain %q:\n%v", part, err)
		}
	}
}

// each runs tests in parallel, each with a separate program.
func each(t *testing.T, a Adapter, tests map[string]func(*testing.T, *bench)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBench(t, a))
		})
	}
}
