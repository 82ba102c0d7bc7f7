package grpclock_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

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

// An interceptor that the program has never asked for guards no method: its rules lock nothing.
func TestCheck_InterceptorThatIsNeverAskedFor(t *testing.T) {
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

// So does a rule that a reload brings.
func TestReload_RuleOfAMethodWithoutItsInterceptor(t *testing.T) {
	t.Parallel()
	rules := openRules(t, "rules: []\n")
	guard := newGuard(t, grpclock.WithSet(rules))
	guard.StreamServerInterceptor()
	server := grpc.NewServer()
	shoppb.RegisterOrdersServer(server, &shop{})
	if err := guard.Check(server); err != nil {
		t.Fatal(err)
	}
	if err := rules.change(t, "rules:\n  - {grpc: /shop.v1.Orders/Pay, key: \"order:#{req.order_id}\"}\n"); err == nil || !strings.Contains(err.Error(), "UnaryServerInterceptor") {
		t.Errorf("got %v", err)
	}
}
