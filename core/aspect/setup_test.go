package aspect_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// order is the argument that the keys of these tests read.
type order struct {
	ID    string
	Items []string
	VIP   bool
}

// call is a Call whose handler and fallback are functions.
type call struct {
	in        order
	env       keyexpr.Env
	handle    func(ctx context.Context, g aspect.Grant) error
	fallback  func(ctx context.Context) error
	canceled  func(err error) bool
	handled   int
	fallbacks int
	evaluated int
}

func (c *call) Env(context.Context) keyexpr.Env {
	c.evaluated++
	if c.env != nil {
		return c.env
	}
	return keyexpr.Values{c.in}
}

func (c *call) Handle(ctx context.Context, g aspect.Grant) error {
	c.handled++
	if c.handle == nil {
		return nil
	}
	return c.handle(ctx, g)
}

func (c *call) Fallback(ctx context.Context, _ string) error {
	c.fallbacks++
	if c.fallback == nil {
		return nil
	}
	return c.fallback(ctx)
}

func (c *call) Canceled(err error) bool { return c.canceled != nil && c.canceled(err) }

// failingEnv is a request whose variables all yield an error.
type failingEnv struct{ err error }

func (e failingEnv) Value(int) (any, error)              { return nil, e.err }
func (e failingEnv) Items(int, string) ([]string, error) { return nil, e.err }

// site returns a site whose only variable is in.
func site(tb testing.TB) aspect.Site {
	tb.Helper()
	schema, err := keyexpr.Argument(reflect.TypeFor[order]())
	if err != nil {
		tb.Fatal(err)
	}
	return aspect.Site{Endpoint: ruleset.Func("pay"), Schema: schema, Fallbacks: []string{"queue"}}
}

func mustAspect(tb testing.TB, locks *core.Client, opts ...aspect.Option) *aspect.Aspect {
	tb.Helper()
	a, err := aspect.New(locks, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func mustCompile(tb testing.TB, a *aspect.Aspect, rules ...ruleset.Rule) *aspect.Point {
	tb.Helper()
	p, err := a.Compile(site(tb), rules...)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// record keeps the events that observers get.
type record struct {
	mu        sync.Mutex
	rules     []aspect.RuleInfo
	decisions []aspect.Decision
	failures  []aspect.Failure
	unlocked  []aspect.UnlockedRun
	releases  []core.HoldResult // releases that failed
}

func (r *record) observer() *core.Observer {
	return &core.Observer{
		HoldEnd: r.observeHoldEnd,
		Rules: &aspect.Observer{
			Rule:     r.observeRule,
			Decision: r.observeDecision,
			Failure:  r.observeFailure,
			Unlocked: r.observeUnlocked,
		},
	}
}

func (r *record) observeRule(i aspect.RuleInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = append(r.rules, i)
}

func (r *record) observeDecision(_ context.Context, d aspect.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decisions = append(r.decisions, d)
}

func (r *record) observeFailure(_ context.Context, f aspect.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, f)
}

func (r *record) observeUnlocked(_ context.Context, u aspect.UnlockedRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unlocked = append(r.unlocked, u)
}

func (r *record) observeHoldEnd(_ context.Context, e core.HoldResult) {
	if e.Err == nil || errors.Is(e.Err, core.ErrNotHeld) || errors.Is(e.Err, core.ErrClosed) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releases = append(r.releases, e)
}

// last returns the last decision.
func (r *record) last(tb testing.TB) aspect.Decision {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.decisions) == 0 {
		tb.Fatal("no decision was observed")
	}
	return r.decisions[len(r.decisions)-1]
}

// want fails the test unless got and want are equal.
func want[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// wantErr fails the test unless an error matches another error.
func wantErr(tb testing.TB, what string, got, want error) {
	tb.Helper()
	if !errors.Is(got, want) {
		tb.Errorf("%s: got %v, want an error that matches %v", what, got, want)
	}
}

var errHandler = errors.New("card declined")

// bench is an embedded Redis with a lock client, in a bubble of time.
type bench struct {
	redis *redistest.Server
	locks *core.Client
	rdb   *redis.Client // to look at keys
}

// newBench returns the bench of a test inside a synctest bubble, where hours of leases take no time.
func newBench(t *testing.T, opts ...core.Option) *bench {
	t.Helper()
	b := &bench{redis: redistest.New(t)}
	b.locks, b.rdb = b.newClient(t, opts...), b.redis.Client()
	return b
}

// observe replaces the client of the bench with a client that has observers.
func (b *bench) observe(t *testing.T, observers ...*core.Observer) *core.Client {
	t.Helper()
	b.locks = b.newClient(t, core.WithObserver(observers...))
	return b.locks
}

// newClient returns another client of the same Redis.
func (b *bench) newClient(t *testing.T, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(b.redis.Client(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.redis.Up()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := locks.Close(ctx); err != nil && !errors.Is(err, core.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
	return locks
}

// holders returns the holders of a lock in Redis with their counts. The holders of a semaphore are its permits.
func (b *bench) holders(tb testing.TB, key string) map[string]string {
	tb.Helper()
	if b.rdb.Type(context.Background(), key).Val() == "string" {
		permits := map[string]string{}
		for _, id := range b.rdb.ZRange(context.Background(), "{"+key+"}:timeout", 0, -1).Val() {
			permits[id] = "1"
		}
		return permits
	}
	m, err := b.rdb.HGetAll(context.Background(), key).Result()
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func (b *bench) wantFree(tb testing.TB, keys ...string) {
	tb.Helper()
	for _, key := range keys {
		if m := b.holders(tb, key); len(m) > 0 {
			tb.Errorf("%s: held by %v, want free", key, m)
		}
	}
}

func (b *bench) wantHeld(tb testing.TB, keys ...string) {
	tb.Helper()
	for _, key := range keys {
		if len(b.holders(tb, key)) == 0 {
			tb.Errorf("%s: free, want held", key)
		}
	}
}
