package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
)

func TestTable_RemembersExistingMethods(t *testing.T) {
	t.Parallel()
	b := prepareTill(t, patient, sellAll)
	b.server = grpc.NewServer(
		grpc.StreamInterceptor(b.guard.StreamServerInterceptor()),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			m := new(emptypb.Empty)
			return errors.Join(stream.RecvMsg(m), stream.SendMsg(m))
		}),
	)
	b.serve()
	for i := range 50 {
		name := fmt.Sprintf("/some.Service%d/Call", i)
		if err := b.conn.Invoke(t.Context(), name, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.guard.Known(); got != 0 {
		t.Errorf("%d unknown methods are remembered, want 0", got)
	}
	for range 2 { // a method that is not registered but has a descriptor
		if err := b.conn.Invoke(t.Context(), tillMethod("Plain"), &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.guard.Known(); got != 1 {
		t.Errorf("%d methods are remembered, want only the described one", got)
	}
}

func TestTable_AfterCheck(t *testing.T) {
	t.Parallel()
	b := prepareTill(t, patient, sellAll, tillQueue()).checkAndServe()
	if got, want := b.guard.Known(), tillMethods().Len(); got != want {
		t.Errorf("%d methods are remembered, want %d", got, want)
	}
	b.sell(t.Context(), "Plain", sale("1", 1))
	b.sell(t.Context(), "Talk", sale("1", 1))
	if got, want := b.guard.Known(), tillMethods().Len(); got != want {
		t.Errorf("%d methods are remembered after calls, want %d", got, want)
	}
}

func TestTable_UnknownServicesFollowReloads(t *testing.T) {
	t.Parallel()
	const star = "rules:\n  - {grpc: '*', key: 'any:#{method}', wait_time: none}\n"
	rules := openRules(t, star)
	b := prepare(t, &shop{}, grpclock.WithSet(rules))
	unary, stream := b.guard.UnaryServerInterceptor(), b.guard.StreamServerInterceptor()
	runs := func() (ran bool) {
		t.Helper()
		info := &grpc.StreamServerInfo{FullMethod: "/a.B/C", IsServerStream: true, IsClientStream: true}
		err := stream(nil, silentStream{ctx: t.Context()}, info, func(any, grpc.ServerStream) error { ran = true; return nil })
		if ran == (status.Code(err) == codes.Aborted) {
			t.Errorf("ran: %v, with %v", ran, err)
		}
		return ran
	}
	b.redis.Take("any:/a.B/C", 1<<40)
	if runs() {
		t.Error("ran under a taken lock")
	}
	if err := rules.change(t, elsewhere); err != nil {
		t.Fatal(err)
	}
	if !runs() {
		t.Error("did not run without rules")
	}
	if err := rules.change(t, star); err != nil {
		t.Fatal(err)
	}
	if runs() {
		t.Error("ran under a taken lock after the rule came back")
	}
	_, err := unary(t.Context(), order("1"), &grpc.UnaryServerInfo{FullMethod: "/x.Y/Z"}, func(context.Context, any) (any, error) { return nil, nil })
	if err != nil {
		t.Error(err)
	}
}

func TestTable_UnknownServicesReportWildcards(t *testing.T) {
	t.Parallel()
	rules := openRules(t, "rules:\n  - {grpc: /a.B/*, key: k}\n")
	seen := &ruleLog{}
	b := prepare(t, &shop{}, grpclock.WithSet(rules), core.WithObserver(seen.observer()))
	call := func() {
		info := &grpc.StreamServerInfo{FullMethod: "/a.B/C", IsServerStream: true, IsClientStream: true}
		_ = b.guard.StreamServerInterceptor()(nil, silentStream{ctx: t.Context()}, info, func(any, grpc.ServerStream) error { return nil })
	}
	call()
	if err := rules.change(t, "rules:\n  - {grpc: '*', key: k}\n"); err != nil {
		t.Fatal(err)
	}
	call()
	if got, want := seen.take(), []string{"/a.B/* /a.B/*", "gone: /a.B/* /a.B/*", "* *"}; !slices.Equal(got, want) {
		t.Errorf("observers got %q, want %q", got, want)
	}
}

// interruptingResolver is a resolver without descriptors. It calls a function at its n-th lookup.
type interruptingResolver struct {
	protodesc.Resolver
	n    int
	then func()
}

func (a *interruptingResolver) FindDescriptorByName(protoreflect.FullName) (protoreflect.Descriptor, error) {
	if a.n--; a.n == 0 {
		a.then()
	}
	return nil, protoregistry.NotFound
}

// A reload happens after a method was compiled and before it is entered in the table.
func TestTable_ReloadDuringCompile(t *testing.T) {
	t.Parallel()
	const exact, prefix, star = "/some.Service/Call", "/some.Service/*", "'*'"
	rule := func(endpoint, fields string) string { return "rules:\n  - {grpc: " + endpoint + ", " + fields + "}\n" }
	for name, before := range map[string]string{
		"a rule comes":       elsewhere,
		"a rule changes":     rule(exact, "key: other, wait_time: none"),
		"a wildcard shrinks": rule(star, "key: other, wait_time: none"),
	} {
		rules := openRules(t, "allow_rekey: true\n"+before)
		source := &interruptingResolver{}
		b := prepare(t, &shop{}, grpclock.WithSet(rules), grpclock.WithDescriptors(source))
		b.redis.Take("k", 1<<40)
		source.then = func() {
			if err := rules.change(t, "allow_rekey: true\n"+rule(prefix, "key: k, wait_time: none")); err != nil {
				t.Error(err)
			}
		}
		info := &grpc.UnaryServerInfo{FullMethod: exact}
		source.n = 1
		for range 2 {
			_, err := b.guard.UnaryServerInterceptor()(t.Context(), order("1"), info, func(context.Context, any) (any, error) { return nil, nil })
			if status.Code(err) != codes.Aborted {
				t.Errorf("%s: got %v, want ABORTED by the new rule", name, err)
			}
		}
	}
}

// silentStream is a stream that discards its headers.
type silentStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s silentStream) Context() context.Context { return s.ctx }

func (silentStream) SetHeader(metadata.MD) error { return nil }

func (silentStream) SetTrailer(metadata.MD) {}

func TestTable_RuleOfUnknownMethod(t *testing.T) {
	t.Parallel()
	b := prepare(t, &shop{}, grpclock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC("/a.B/C"), Key: "k", WaitTime: ruleset.NoWait}))
	b.redis.Take("k", 1<<40)
	info := &grpc.StreamServerInfo{FullMethod: "/a.B/C", IsServerStream: true}
	err := b.guard.StreamServerInterceptor()(nil, silentStream{ctx: t.Context()}, info,
		func(any, grpc.ServerStream) error { t.Error("ran"); return nil })
	if status.Code(err) != codes.Aborted {
		t.Errorf("under a taken lock: got %v, want ABORTED", err)
	}
}

// First calls and reloads change the table concurrently. At the end, the last file is in force for every
// method.
func TestTable_ForgetsOldSet(t *testing.T) {
	t.Parallel()
	star := func(more string) string { return "rules:\n  - {grpc: '*', key: all, wait_time: none" + more + "}\n" }
	rules := openRules(t, star(""))
	b := prepare(t, &shop{}, grpclock.WithSet(rules))
	b.redis.Take("all", 1<<40)
	unary := b.guard.UnaryServerInterceptor()
	call := func(i int) codes.Code {
		info := &grpc.UnaryServerInfo{FullMethod: fmt.Sprintf("/some.Service/Call%d", i)}
		_, err := unary(t.Context(), order("1"), info, func(context.Context, any) (any, error) { return nil, nil })
		return status.Code(err)
	}
	const methods = 400
	var callers sync.WaitGroup
	for n := range 4 {
		callers.Go(func() {
			for i := n; i < methods; i += 4 {
				if got := call(i); got != codes.OK && got != codes.Aborted {
					t.Errorf("got %v", got)
				}
			}
		})
	}
	for range 20 {
		for _, more := range []string{", disabled: true", ""} {
			if err := rules.change(t, star(more)); err != nil {
				t.Error(err)
			}
		}
	}
	callers.Wait()
	for i := range methods {
		if got := call(i); got != codes.Aborted {
			t.Errorf("method %d: got %v, want ABORTED", i, got)
		}
	}
}
