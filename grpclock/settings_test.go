package grpclock_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
)

// warnings collects the warnings that a guard reports to observers.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Warning: w.observeWarning}}
}

func (w *warnings) observeWarning(p *ruleset.Problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, p.Error())
}

func (w *warnings) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.list, "\n")
}

// A wildcard that matches only methods with options applies to no method, so it is reported as unmatched.
func TestSettings_WildcardOverOptionsIsUnmatched(t *testing.T) {
	t.Parallel()
	files, service := readLate(t, lateService(t, payLock, chatLock), nil)
	b := prepare(t, &shop{}, grpclock.WithDescriptors(files), grpclock.WithRules(
		ruleset.Rule{Endpoint: ruleset.GRPC("/late.v1.Orders/*"), Key: "k"}))
	err := b.guard.Check(dynamicServer(b.guard, service))
	if err == nil || !strings.Contains(err.Error(), "applies to no method") {
		t.Errorf("got %v", err)
	}
}

// A wildcard does not match health checks and reflection, because they have to answer while other calls wait.
// A rule with the name of such a method matches it.
func TestSettings_WildcardAndInfrastructure(t *testing.T) {
	t.Parallel()
	const health, reflect = "/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	for _, tt := range []struct {
		rule, method string
		want         codes.Code
	}{
		{"*", health, codes.OK},
		{"*", reflect, codes.OK},
		{"*", path("Pay"), codes.Aborted},
		{health, health, codes.Aborted},
		{"/grpc.health.v1.Health/*", health, codes.Aborted},
		{reflect, reflect, codes.Aborted},
	} {
		b := prepare(t, &shop{}, grpclock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC(tt.rule), Key: "one", WaitTime: ruleset.NoWait}))
		b.redis.Take("one", time.Hour)
		var err error
		if tt.method == reflect {
			info := &grpc.StreamServerInfo{FullMethod: tt.method, IsClientStream: true, IsServerStream: true}
			err = b.guard.StreamServerInterceptor()(b.shop, silentStream{ctx: t.Context()}, info, func(any, grpc.ServerStream) error { return nil })
		} else {
			_, err = b.guard.UnaryServerInterceptor()(t.Context(), order("1"), &grpc.UnaryServerInfo{FullMethod: tt.method}, replyEmpty)
		}
		if got := status.Code(err); got != tt.want {
			t.Errorf("%s under %s: got %s, want %s", tt.method, tt.rule, got, tt.want)
		}
	}
}
