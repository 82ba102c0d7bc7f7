package grpclock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

func TestCheck_AllProblems(t *testing.T) {
	t.Parallel()
	null := func(response string) func(*ruleset.Rule) {
		return func(r *ruleset.Rule) { r.OnBusy, r.Response = failpolicy.NullResponse, response }
	}
	b := prepare(t, &shop{},
		grpclock.WithServerFirst(path("Chat")),
		grpclock.WithFallback("refund", func(context.Context, *shoppb.PayReply) (*emptypb.Empty, error) { return nil, nil }),
		grpclock.WithRules(
			rule("Pya"),
			rule("Pay", func(r *ruleset.Rule) { r.Name, r.Key = "field", "order:#{req.ordr_id}" }),
			rule("Pay", func(r *ruleset.Rule) { r.Name, r.When = "condition", "req.amont > 5 && usr == ''" }),
			rule("Pay", func(r *ruleset.Rule) { r.Name, r.OnBusy, r.Fallback = "types", failpolicy.Fallback, "refund" }),
			rule("Pay", func(r *ruleset.Rule) { r.Name, r.OnBusy, r.Fallback = "name", failpolicy.Fallback, "refnd" }),
			rule("Import", null(`{"receit": "none"}`)),
			rule("Track", null(`{"receipt": "none"}`)),
			rule("Chat"),
			ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Carts/*"), Key: "cart"},
			ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/*"), Key: "any:#{req.id}"},
		))
	err := b.guard.Check(b.server)
	if _, ok := errors.AsType[*ruleset.InvalidError](err); !ok {
		t.Fatalf("got %v, want a *ruleset.InvalidError", err)
	}
	golden.Assert(t, err.Error()+"\n", "check.golden")
}

func TestCheck_SeveralServers(t *testing.T) {
	t.Parallel()
	b := prepare(t, &shop{}, grpclock.WithRules(
		rule("Pay"), ruleset.Rule{Endpoint: ruleset.GRPC("/admin.Till/Close"), Key: "till"}))
	if err := b.guard.Check(b.server); err == nil {
		t.Error("the rule of the other server was not reported")
	}
	if err := b.guard.Check(b.server, serverWithoutDescriptor(b.guard, "admin.Till", "Close")); err != nil {
		t.Error(err)
	}
}

// services is a server that does nothing but report its registered services.
type services map[string]grpc.ServiceInfo

func (s services) GetServiceInfo() map[string]grpc.ServiceInfo { return s }

// A proxy in front of another server of the program registers its methods as streams.
func TestCheck_MethodInTwoShapes(t *testing.T) {
	t.Parallel()
	method := func(streams bool) services {
		return services{"admin.Till": {Methods: []grpc.MethodInfo{{Name: "Close", IsClientStream: streams, IsServerStream: streams}}}}
	}
	b := prepare(t, &shop{}, grpclock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC("/admin.Till/Close"), Key: "till"}))
	if err := b.guard.Check(method(false), method(true)); err != nil {
		t.Error(err)
	}
}

func TestGuard_BrokenRuleAnswersInternal(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		b := prepare(t, &shop{}, grpclock.WithRules(rule(kind, func(r *ruleset.Rule) {
			r.Key, r.OnKey, r.OnBusy = "order:#{req.ordr_id}", failpolicy.Proceed, failpolicy.Proceed
		})))
		b.serve() // without Check
		got := b.call(t.Context(), kind, "1")
		reasons, _ := got.details()
		if status.Code(got.err) != codes.Internal || b.shop.ran.Load() != 0 || !slices.Equal(reasons, []string{"interlock/LOCK_MISCONFIGURED"}) {
			t.Errorf("%s: got %v %q, ran %d", kind, got.err, reasons, b.shop.ran.Load())
		}
	}
}

// serverWithoutDescriptor returns a server of a method without a descriptor.
func serverWithoutDescriptor(guard *grpclock.Guard, service, name string) *grpc.Server {
	s := grpc.NewServer(grpc.UnaryInterceptor(guard.UnaryServerInterceptor()))
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: service, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			in := new(emptypb.Empty)
			if err := decode(in); err != nil {
				return nil, err
			}
			return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + service + "/" + name},
				func(context.Context, any) (any, error) { return in, nil })
		}}},
	}, nil)
	return s
}

func TestGuard_MethodWithoutDescriptor(t *testing.T) {
	t.Parallel()
	endpoint := ruleset.GRPC("/admin.Till/Close")
	b := prepare(t, &shop{}, grpclock.WithRules(
		ruleset.Rule{Endpoint: endpoint, Name: "message", Key: "till:#{req.id}"},
		ruleset.Rule{Endpoint: endpoint, Name: "reply", Key: "till", OnBusy: failpolicy.Skip},
	))
	golden.Assert(t, b.guard.Check(serverWithoutDescriptor(b.guard, "admin.Till", "Close")).Error()+"\n", "undescribed.golden")

	b = prepare(t, &shop{}, grpclock.WithRules(ruleset.Rule{Endpoint: endpoint, Key: "till:#{method}", WaitTime: ruleset.NoWait}))
	b.server = serverWithoutDescriptor(b.guard, "admin.Till", "Close")
	b.serve()
	b.redis.Take("till:/admin.Till/Close", time.Minute)
	if err := b.conn.Invoke(t.Context(), "/admin.Till/Close", &emptypb.Empty{}, &emptypb.Empty{}); status.Code(err) != codes.Aborted {
		t.Errorf("got %v, want ABORTED", err)
	}
}

func TestGuard_UnknownMethodsShareOnePoint(t *testing.T) {
	t.Parallel()
	rules := &ruleCounter{}
	b := prepare(t, &shop{}, core.WithObserver(rules.observer()), grpclock.WithRules(
		ruleset.Rule{Endpoint: ruleset.GRPC("*"), Key: "any:#{method}", WaitTime: ruleset.NoWait}))
	b.server = grpc.NewServer(
		grpc.StreamInterceptor(b.guard.StreamServerInterceptor()),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			m := new(emptypb.Empty)
			return errors.Join(stream.RecvMsg(m), stream.SendMsg(m))
		}),
	)
	b.serve()
	for _, name := range []string{"/a.B/C", "/a.B/D", "/e.F/G"} {
		if err := b.conn.Invoke(t.Context(), name, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
			t.Error(err)
		}
	}
	if got := rules.n; got != 1 {
		t.Errorf("%d rules were compiled, want one for all unknown methods", got)
	}
}

type ruleCounter struct{ n int }

func (c *ruleCounter) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Rule: func(aspect.RuleInfo) { c.n++ }}}
}

func TestCheck_CompilesOnce(t *testing.T) {
	t.Parallel()
	rules := &ruleCounter{}
	b := setup(t, &shop{}, core.WithObserver(rules.observer()), grpclock.WithRules(rule("Pay"), rule("Chat")))
	if err := b.guard.Check(b.server); err != nil {
		t.Fatal(err)
	}
	b.call(t.Context(), "Pay", "1").check(t, "paid 1")
	if rules.n != 2 {
		t.Errorf("%d rules were compiled, want 2", rules.n)
	}
}

func TestNew_AllProblems(t *testing.T) {
	t.Parallel()
	set, err := ruleset.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	locks, err := core.New(redistest.New(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	_, err = grpclock.New(locks,
		nil,
		grpclock.WithRules(ruleset.Rule{Key: "no endpoint"}),
		grpclock.WithRules(
			ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}"},
			ruleset.Rule{Endpoint: ruleset.Func("close-day"), Key: "day"}),
		grpclock.WithSet(set), grpclock.WithSet(nil), grpclock.WithSet((*ruleset.Live)(nil)), grpclock.WithSet(set),
		grpclock.WithProfile("x", ruleset.Rule{}),
		grpclock.WithDescriptors(nil),
		grpclock.WithServerFirst("Chat"),
		grpclock.WithFallback[proto.Message, proto.Message]("queue", nil),
		grpclock.WithStreamFallback("", func(any, grpc.ServerStream) error { return nil }),
		grpclock.WithVariable[string]("principal", nil),
		grpclock.WithVariable("req", func(context.Context) (string, error) { return "", nil }),
	)
	if err == nil {
		t.Fatal("got no error")
	}
	golden.Assert(t, err.Error()+"\n", "options.golden")

	_, err = grpclock.New(nil, grpclock.WithRules(
		ruleset.Rule{Key: "no endpoint"},
		ruleset.Rule{Endpoint: ruleset.GRPC("shop.v1.Orders/Pay"), Key: "a", WaitTime: -1}))
	if err == nil {
		t.Fatal("got no error")
	}
	golden.Assert(t, err.Error()+"\n", "rules.golden")
}

func TestWithVariable_InvalidTypes(t *testing.T) {
	t.Parallel()
	_, err := grpclock.New(nil, grpclock.WithVariable("queue", func(context.Context) (chan int, error) { return nil, nil }))
	if err == nil || !strings.Contains(err.Error(), `"queue"`) {
		t.Errorf("got %v, want an error about the variable", err)
	}
}

func TestNew_DefaultsAndProfiles(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{},
		grpclock.WithProfile("default", ruleset.Rule{OnBusy: failpolicy.Skip}),
		grpclock.WithProfile("impatient", ruleset.Rule{WaitTime: ruleset.NoWait}),
		grpclock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/*"), Key: "all", Profile: "impatient"}))
	b.redis.Take("all", time.Minute)
	for _, kind := range kinds {
		got := b.call(t.Context(), kind, "1")
		if got.err != nil || got.lockStatus() != failpolicy.MarkSkipped {
			t.Errorf("%s: got %v, header %q", kind, got.err, got.lockStatus())
		}
	}
}

// Calls fail if one key has two kinds of lock. The kinds can be compared only after all layers of a method
// are known: here the key comes from the .proto file.
func TestCheck_KindsOnOneKey(t *testing.T) {
	t.Parallel()
	const want = `kind: a reentrant lock of "till:#{req.item}", which is a fenced lock for the rule of grpc /till.v1.Till/Refuse, declared in `
	rules := openRules(t, tillFile("Refuse", "kind: fenced"))
	b := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(rules))
	if err := b.guard.Check(b.server); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if err := rules.change(t, "allow_rekey: true\n"+tillFile("Refuse", "kind: reentrant")); err != nil {
		t.Fatal(err)
	}
	if err := b.guard.Check(b.server); err != nil {
		t.Error(err)
	}
	if err := rules.change(t, "allow_rekey: true\n"+tillFile("Refuse", "kind: fenced")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("after a reload: got %v, want %q", err, want)
	}
}

func newGuard(t *testing.T, opts ...grpclock.Option) *grpclock.Guard {
	t.Helper()
	locks, err := core.New(redistest.New(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(t.Context()) })
	guard, err := grpclock.New(locks, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// If the program never calls the method for an interceptor, no method of that shape is guarded.
func TestCheck_MissingInterceptor(t *testing.T) {
	t.Parallel()
	server := grpc.NewServer()
	shoppb.RegisterOrdersServer(server, &shop{})
	unary := func(g *grpclock.Guard) { g.UnaryServerInterceptor() }
	stream := func(g *grpclock.Guard) { g.StreamServerInterceptor() }
	for name, tt := range map[string]struct {
		rule ruleset.Rule
		asks []func(*grpclock.Guard)
		want string
	}{
		"unary method, none":              {rule("Pay"), nil, "UnaryServerInterceptor"},
		"unary method, streams only":      {rule("Pay"), []func(*grpclock.Guard){stream}, "UnaryServerInterceptor"},
		"unary method, unary":             {rule("Pay"), []func(*grpclock.Guard){unary}, ""},
		"streaming method, unary only":    {ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/Import"), Key: "k"}, []func(*grpclock.Guard){unary}, "StreamServerInterceptor"},
		"streaming method, streams":       {ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/Import"), Key: "k"}, []func(*grpclock.Guard){stream}, ""},
		"every method, unary only":        {ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/*"), Key: "k"}, []func(*grpclock.Guard){unary}, "StreamServerInterceptor"},
		"every method, both":              {ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/*"), Key: "k"}, []func(*grpclock.Guard){unary, stream}, ""},
		"a method that needs none, alone": {ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/Pay"), None: true}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard := newGuard(t, grpclock.WithRules(tt.rule))
			for _, ask := range tt.asks {
				ask(guard)
			}
			err := guard.Check(server)
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error that says %q", err, tt.want)
			}
		})
	}
}
