package grpclock_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

const orderKey = "order:#{req.order_id}"

// prepareLocks returns a bench whose unary interceptors are a recovery and the given ones. Its guard guards nothing.
func prepareLocks(t testing.TB, s *shop, interceptors func(locks *core.Client) []grpc.UnaryServerInterceptor, opts ...any) *bench {
	t.Helper()
	b := prepare(t, s, opts...)
	chain := append([]grpc.UnaryServerInterceptor{recoverUnary}, interceptors(b.locks)...)
	b.server = grpc.NewServer(grpc.ChainUnaryInterceptor(chain...), grpc.WaitForHandlers(true))
	shoppb.RegisterOrdersServer(b.server, s)
	return b
}

// payLocks returns the interceptor of a Lock for Pay that does not wait.
func payLocks(more ...func(*ruleset.Rule)) func(*core.Client) []grpc.UnaryServerInterceptor {
	r := ruleset.Rule{WaitTime: ruleset.NoWait}
	for _, change := range more {
		change(&r)
	}
	return func(locks *core.Client) []grpc.UnaryServerInterceptor {
		return []grpc.UnaryServerInterceptor{grpclock.Lock(locks, path("Pay"), orderKey, r)}
	}
}

func TestLock_Methods(t *testing.T) {
	t.Parallel()
	seen := &decisions{}
	s := &shop{}
	b := prepareLocks(t, s, payLocks(), core.WithObserver(seen.observer()))
	b.serve()
	s.pay = func(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
		core.MustHold(ctx, "order:"+req.GetOrderId())
		if grpclock.Hold(ctx) == nil || !b.held("order:"+req.GetOrderId()) {
			t.Error("the handler runs without the lock")
		}
		return reply("paid " + req.GetOrderId()), nil
	}
	b.call(t.Context(), "Pay", "1").check(t, "paid 1")
	if b.held("order:1") {
		t.Error("the lock is held after the call")
	}
	b.redis.Take("order:1", time.Hour)
	got := b.call(t.Context(), "Pay", "1")
	if reasons, hints := got.details(); status.Code(got.err) != codes.Aborted || len(reasons) != 1 || reasons[0] != "interlock/LOCK_BUSY" || hints != 1 {
		t.Errorf("the lock is taken: got %v, reasons %q, %d hints", got.err, reasons, hints)
	}
	b.call(t.Context(), "Pay", "2").check(t, "paid 2")
	b.call(t.Context(), "Free", "1").check(t, "free 1")
	b.call(t.Context(), "Track", "1").check(t, "packed 1", "sent 1")
	b.stop()
	if len(seen.list) != 3 || seen.list[0].Rule != path("Pay") {
		t.Errorf("observers got the decisions %+v, want three of rule %s", seen.list, path("Pay"))
	}
}

func TestLock_Skip(t *testing.T) {
	t.Parallel()
	s := &shop{}
	b := prepareLocks(t, s, payLocks(func(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip }))
	b.serve()
	b.redis.Take("order:1", time.Hour)
	got := b.call(t.Context(), "Pay", "1")
	got.check(t, "")
	if got.lockStatus() != "skipped" || s.ran.Load() != 0 {
		t.Errorf("got x-lock-status %q, and the handler ran %d times", got.lockStatus(), s.ran.Load())
	}
}

func TestLock_Waits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := prepareLocks(t, &shop{}, payLocks(func(r *ruleset.Rule) { r.WaitTime = 3 * time.Second }))
		b.serve()
		b.redis.Take("order:1", time.Second)
		began := time.Now()
		b.call(t.Context(), "Pay", "1").check(t, "paid 1")
		if waited := time.Since(began); waited < 900*time.Millisecond {
			t.Errorf("the call returned after %s, want a second", waited)
		}
		b.redis.Take("order:2", time.Hour)
		began = time.Now()
		if got := b.call(t.Context(), "Pay", "2"); status.Code(got.err) != codes.Aborted || time.Since(began) < 2900*time.Millisecond {
			t.Errorf("got %v after %s, want ABORTED after 3 s", got.err, time.Since(began))
		}
		b.stop()
	})
}

func TestLock_Panic(t *testing.T) {
	t.Parallel()
	s := &shop{pay: func(context.Context, *shoppb.PayRequest) (*shoppb.PayReply, error) { panic("bug") }}
	b := prepareLocks(t, s, payLocks())
	b.serve()
	if got := b.call(t.Context(), "Pay", "1"); status.Convert(got.err).Message() != "panic: bug" {
		t.Errorf("got %v, want the panic", got.err)
	}
	if b.held("order:1") {
		t.Error("the lock is held after the panic")
	}
}

// A service that is registered under the name of the locked method, with handlers that name another method, never runs
// without the lock.
func TestLock_RenamedService(t *testing.T) {
	t.Parallel()
	seen := &warnings{}
	s := &shop{}
	b := prepare(t, s, core.WithObserver(seen.observer()))
	b.server = grpc.NewServer(grpc.ChainUnaryInterceptor(grpclock.Lock(b.locks, tillMethod("Plain"), "till:#{req.item}")))
	desc := shoppb.Orders_ServiceDesc
	desc.ServiceName, desc.Methods = "till.v1.Till", []grpc.MethodDesc{{MethodName: "Plain", Handler: desc.Methods[0].Handler}}
	b.server.RegisterService(&desc, s)
	shoppb.RegisterOrdersServer(b.server, s)
	b.serve()
	for range 2 {
		err := b.conn.Invoke(t.Context(), tillMethod("Plain"), order("1"), reply(""))
		if reasons, _ := (answer{err: err}).details(); status.Code(err) != codes.Internal || len(reasons) != 1 || reasons[0] != "interlock/"+failpolicy.ReasonMisconfigured {
			t.Errorf("got %v %q, want the answer of a broken rule", err, reasons)
		}
	}
	if text := seen.text(); s.ran.Load() != 0 || strings.Count(text, "the server has matched "+tillMethod("Plain")) != 1 {
		t.Errorf("the handler ran %d times, and observers got the warnings %q", s.ran.Load(), text)
	}
	b.call(t.Context(), "Pay", "1").check(t, "paid 1")
}

// A second Lock with the same rule, for a second server or by mistake, is the first one. It takes nothing more.
func TestLock_SameRuleTwice(t *testing.T) {
	t.Parallel()
	s := &shop{}
	b := prepareLocks(t, s, func(locks *core.Client) []grpc.UnaryServerInterceptor {
		return append(payLocks()(locks), payLocks()(locks)...)
	})
	b.serve()
	s.pay = func(ctx context.Context, _ *shoppb.PayRequest) (*shoppb.PayReply, error) {
		state, err := b.locks.Lock("order:1").State(ctx)
		for _, n := range state.Holders {
			if n != 1 {
				t.Errorf("the lock is held %d times", n)
			}
		}
		if err != nil || len(state.Holders) != 1 {
			t.Errorf("held by %v, error %v", state.Holders, err)
		}
		return reply("paid"), nil
	}
	b.call(t.Context(), "Pay", "1").check(t, "paid")
}

func TestLock_BesideAGuard(t *testing.T) {
	t.Parallel()
	t.Run("same name", func(t *testing.T) {
		t.Parallel()
		b := prepareLocks(t, &shop{}, payLocks(), grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) { r.Key = "all" })))
		err := b.guard.Check(b.server)
		if err == nil || !strings.Contains(err.Error(), "is there twice") {
			t.Errorf("got %v, want two rules of one name", err)
		}
	})
	t.Run("other kind", func(t *testing.T) {
		t.Parallel()
		b := prepareLocks(t, &shop{}, payLocks(), grpclock.WithRules(rule("Free", func(r *ruleset.Rule) { r.Kind = ruleset.Fair })))
		err := b.guard.Check(b.server)
		if err == nil || !strings.Contains(err.Error(), "fair") {
			t.Errorf("got %v, want two kinds of one key", err)
		}
	})
	t.Run("both", func(t *testing.T) {
		t.Parallel()
		s := &shop{}
		b := prepare(t, s, grpclock.WithSet(load(t, `
uncovered: error
rules:
  - {grpc: /shop.v1.Orders/Pay, name: all, key: all, wait_time: none}
  - {grpc: /shop.v1.Orders/Track, none: true}
  - {grpc: /shop.v1.Orders/Import, none: true}
  - {grpc: /shop.v1.Orders/Chat, none: true}
`)))
		b.server = b.newServer([]grpc.UnaryServerInterceptor{
			payLocks()(b.locks)[0],
			grpclock.Lock(b.locks, path("Free"), "free"),
		}, nil)
		shoppb.RegisterOrdersServer(b.server, s)
		b.checkAndServe() // Free has a Lock, so it is not uncovered
		s.pay = func(context.Context, *shoppb.PayRequest) (*shoppb.PayReply, error) {
			return reply(fmt.Sprintf("order %t, all %t", b.held("order:1"), b.held("all"))), nil
		}
		b.call(t.Context(), "Pay", "1").check(t, "order true, all true")
	})
}

func TestLock_Suspend(t *testing.T) {
	t.Parallel()
	b := prepareLocks(t, &shop{}, payLocks())
	b.serve()
	b.redis.Take("order:1", time.Hour)
	locking, err := aspect.Of(b.locks)
	if err != nil {
		t.Fatal(err)
	}
	b.guard.Aspect().Suspend()
	if got := b.call(t.Context(), "Pay", "1"); status.Code(got.err) != codes.Aborted {
		t.Errorf("a guard is suspended: got %v, want ABORTED", got.err)
	}
	locking.Suspend()
	b.call(t.Context(), "Pay", "1").check(t, "paid 1")
}

func TestLock_Panics(t *testing.T) {
	t.Parallel()
	b := prepare(t, &shop{})
	grpclock.Lock(b.locks, path("Free"), "free")
	var without *core.Client
	for name, tt := range map[string]struct {
		locks   *core.Client
		method  string
		key     string
		further []ruleset.Rule
		want    []string
	}{
		"unknown field":       {b.locks, path("Pay"), "order:#{req.ordr_id}", nil, []string{"Key: 1:13: shop.v1.PayRequest has no field ordr_id", "write req.order_id"}},
		"variable of HTTP":    {b.locks, path("Pay"), "order:#{path.id}", nil, []string{"Key: 1:9", "path"}},
		"registered variable": {b.locks, path("Pay"), "order:#{tenant}", nil, []string{"Key: 1:9", "tenant"}},
		"unclosed expression": {b.locks, path("Pay"), "order:#{req.order_id", nil, []string{"Key: 1:"}},
		"no key":              {b.locks, path("Pay"), "", nil, []string{"Key: "}},
		"unknown strategy":    {b.locks, path("Pay"), orderKey, []ruleset.Rule{{OnBusy: "skipp"}}, []string{"OnBusy: ", "skip"}},
		"wrong time":          {b.locks, path("Pay"), orderKey, []ruleset.Rule{{LeaseTime: time.Nanosecond}}, []string{"LeaseTime: "}},
		"no permits":          {b.locks, path("Pay"), orderKey, []ruleset.Rule{{Kind: ruleset.Semaphore}}, []string{"Permits: "}},
		"fallback":            {b.locks, path("Pay"), orderKey, []ruleset.Rule{{OnBusy: failpolicy.Fallback, Fallback: "queue"}}, []string{"Fallback: ", "WithFallback"}},
		"response":            {b.locks, path("Pay"), orderKey, []ruleset.Rule{{OnBusy: failpolicy.NullResponse, Response: `{"receit": ""}`}}, []string{"Response: not a shop.v1.PayReply"}},
		"profile":             {b.locks, path("Pay"), orderKey, []ruleset.Rule{{Profile: "heavi"}}, []string{"Profile: "}},
		"None":                {b.locks, path("Pay"), orderKey, []ruleset.Rule{{None: true}}, []string{"None"}},
		"two rules":           {b.locks, path("Pay"), orderKey, make([]ruleset.Rule, 2), []string{"2 rules: write one ruleset.Rule"}},
		"rule with a key":     {b.locks, path("Pay"), orderKey, []ruleset.Rule{{Key: "k"}}, []string{"has a key besides the argument"}},
		"rule with keys":      {b.locks, path("Pay"), orderKey, []ruleset.Rule{{Keys: []string{"k"}}}, []string{"has a key besides the argument"}},
		"rule with endpoint":  {b.locks, path("Pay"), orderKey, []ruleset.Rule{{Endpoint: ruleset.GRPC(path("Pay"))}}, []string{"has the Endpoint"}},
		"no client":           {without, path("Pay"), orderKey, nil, []string{"the lock client is nil"}},
		"unknown method":      {b.locks, path("Pai"), orderKey, nil, []string{"the method is not known", "import the generated package"}},
		"no slash":            {b.locks, path("Pay")[1:], orderKey, nil, []string{`write "/shop.v1.Orders/Pay"`}},
		"slash elsewhere":     {b.locks, "/shop/v1.Orders.Pay", orderKey, nil, []string{`write "/shop.v1.Orders/Pay"`}},
		"a service":           {b.locks, "/shop.v1.Orders", orderKey, nil, []string{"the method is not known"}},
		"client-streaming":    {b.locks, path("Import"), "k", nil, []string{"the method is client-streaming: use a guard"}},
		"bidirectional":       {b.locks, path("Chat"), "k", nil, []string{"the method is bidirectional: use a guard"}},
		"declared":            {b.locks, tillMethod("Refuse"), "k", nil, []string{".proto file", "use a guard"}},
		"declared as none":    {b.locks, tillMethod("Free"), "k", nil, []string{".proto file"}},
		"another rule":        {b.locks, path("Free"), "other", nil, []string{"the method has a Lock with another rule: use a guard"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := panicOf(func() { grpclock.Lock(tt.locks, tt.method, tt.key, tt.further...) })
			for _, want := range append(tt.want, fmt.Sprintf("grpclock: Lock(%q): ", tt.method)) {
				if !strings.Contains(text, want) {
					t.Errorf("the panic is %q, want it to contain %q", text, want)
				}
			}
		})
	}
}

// panicOf returns the text with which a function panics, or "".
func panicOf(do func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	do()
	return ""
}

// A Lock that is in no server warns when its interceptor is garbage.
func TestLock_Dropped(t *testing.T) {
	t.Parallel()
	seen := &warnings{}
	b := prepareLocks(t, &shop{}, payLocks(), core.WithObserver(seen.observer()))
	grpclock.Lock(b.locks, path("Free"), "free:#{req.order_id}")
	b.serve()
	b.call(t.Context(), "Pay", "1").check(t, "paid 1")
	timeout := time.Now().Add(5 * time.Minute) // for a test that fails
	for seen.text() == "" && time.Now().Before(timeout) {
		runtime.GC()
	}
	if got, want := seen.text(), "rule of grpc "+path("Free")+": Lock: the program has dropped the interceptor, so it locks nothing: give it to the server"; got != want {
		t.Errorf("got the warnings %q, want %q", got, want)
	}
}

// A Lock of a method that no server has warns at Check.
func TestLock_InNoServer(t *testing.T) {
	t.Parallel()
	seen := &warnings{}
	b := prepareLocks(t, &shop{}, payLocks(), core.WithObserver(seen.observer()))
	if err := b.guard.Check(b.server); err != nil || seen.text() != "" {
		t.Errorf("got %v and the warnings %q", err, seen.text())
	}
	if err := b.guard.Check(grpc.NewServer()); err != nil {
		t.Error(err)
	}
	if want := "rule of grpc " + path("Pay") + ": Lock: matches no method: give Check the server that has the Lock, or remove the Lock"; seen.text() != want {
		t.Errorf("got the warnings %q, want %q", seen.text(), want)
	}
}

// A guard without any rules guards nothing.
func TestCheck_NoRules(t *testing.T) {
	t.Parallel()
	b := prepare(t, &shop{})
	if err := b.guard.Check(b.server); err == nil || !strings.Contains(err.Error(), "the guard has no rules") || !strings.Contains(err.Error(), "WithSet") {
		t.Errorf("got %v", err)
	}
	b = prepare(t, &shop{}, grpclock.WithSet(load(t, "rules: []\n")))
	if err := b.guard.Check(b.server); err != nil {
		t.Errorf("an empty set: %v", err)
	}
}
