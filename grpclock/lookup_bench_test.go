package grpclock

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// serviceOf100 is a server with n registered methods, 100 in each service.
type serviceOf100 int

func (n serviceOf100) GetServiceInfo() map[string]grpc.ServiceInfo {
	services := map[string]grpc.ServiceInfo{}
	for i := range int(n) {
		name := fmt.Sprintf("shop.v1.Service%d", i/100)
		info := services[name]
		info.Methods = append(info.Methods, grpc.MethodInfo{Name: fmt.Sprintf("Method%d", i%100)})
		services[name] = info
	}
	return services
}

// guardOfMethods returns a guard with a rule for each of n methods.
func guardOfMethods(tb testing.TB, n int) (*Guard, []string) {
	tb.Helper()
	locks, err := core.New(redistest.New(tb).Client())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = locks.Close(context.Background()) })
	rules := make([]ruleset.Rule, n)
	names := make([]string, n)
	for i := range rules {
		names[i] = fmt.Sprintf("/shop.v1.Service%d/Method%d", i/100, i%100)
		rules[i] = ruleset.Rule{Endpoint: ruleset.GRPC(names[i]), Key: "k"}
	}
	guard, err := New(locks, WithRules(rules...))
	if err != nil {
		tb.Fatal(err)
	}
	guard.UnaryServerInterceptor()
	if err := guard.Check(serviceOf100(n)); err != nil {
		tb.Fatal(err)
	}
	return guard, names
}

func TestLookup_Allocations(t *testing.T) {
	guard, names := guardOfMethods(t, 100)
	if n := testing.AllocsPerRun(100, func() {
		for _, name := range names {
			if guard.methods.Registered(methodrules.Key{Path: name}) == nil {
				t.Fatal(name + " has no rule")
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			guard, names := guardOfMethods(b, n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if guard.methods.Registered(methodrules.Key{Path: names[i]}) == nil {
					b.Fatal(names[i] + " has no rule")
				}
				if i += 7; i >= len(names) {
					i -= len(names)
				}
			}
		})
	}
}
