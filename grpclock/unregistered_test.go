package grpclock_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// proxy serves every method by a handler of unknown services, like a proxy.
func proxy(t *testing.T, opts ...any) *bench {
	t.Helper()
	b := prepare(t, &shop{}, opts...)
	b.server = grpc.NewServer(
		grpc.StreamInterceptor(b.guard.StreamServerInterceptor()),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			b.shop.ran.Add(1)
			for {
				if err := stream.RecvMsg(new(shoppb.PayRequest)); errors.Is(err, io.EOF) {
					return stream.SendMsg(reply("passed on"))
				} else if err != nil {
					return err
				}
			}
		}),
	)
	b.serve()
	return b
}

// If an unregistered method has a descriptor, its caller gets as many replies as its shape requires.
func TestUnregistered_SkipAndNull(t *testing.T) {
	t.Parallel()
	for strategy, mark := range map[failpolicy.Strategy]string{failpolicy.Skip: "skipped", failpolicy.NullResponse: "null"} {
		for _, key := range []string{"order:#{req.order_id}", "order:#{metadata.order}"} {
			b := proxy(t, grpclock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/*"), Key: key, WaitTime: ruleset.NoWait, OnBusy: strategy}))
			b.redis.Take("order:1", time.Minute)
			for kind, replies := range map[string][]string{"Pay": {""}, "Import": {""}, "Track": nil, "Chat": nil} {
				got := b.call(metadata.AppendToOutgoingContext(t.Context(), "order", "1"), kind, "1")
				got.check(t, replies...)
				if got.lockStatus() != mark {
					t.Errorf("%s: got x-lock-status %q, want %q", kind, got.lockStatus(), mark)
				}
			}
			b.call(metadata.AppendToOutgoingContext(t.Context(), "order", "2"), "Pay", "2").check(t, "passed on")
			if ran := b.shop.ran.Load(); ran != 1 {
				t.Errorf("the handler ran %d times, want 1", ran)
			}
		}
	}
}

func TestUnregistered_ResponseOfRule(t *testing.T) {
	t.Parallel()
	b := proxy(t, grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) {
		r.OnBusy, r.Response = failpolicy.NullResponse, `{"receipt":"none"}`
	})))
	b.redis.Take("order:1", time.Minute)
	b.call(t.Context(), "Pay", "1").check(t, "none")
}

// Without a descriptor, the guard cannot determine which answer a caller expects. A rule with skip or null is then
// broken: each caller gets an error, and observers get one warning with the reason.
func TestUnregistered_WithoutDescriptor(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"*", "/a.B/*", "/a.B/C"} {
		for _, strategy := range []failpolicy.Strategy{failpolicy.Skip, failpolicy.NullResponse} {
			warned := &warnings{}
			b := proxy(t, core.WithObserver(warned.observer()), grpclock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC(endpoint), Key: "any:#{method}", OnBackend: strategy}))
			got := b.conn.Invoke(t.Context(), "/a.B/C", &emptypb.Empty{}, &emptypb.Empty{})
			if reasons, _ := (answer{err: got}).details(); status.Code(got) != codes.Internal || len(reasons) != 1 || reasons[0] != "interlock/"+failpolicy.ReasonMisconfigured {
				t.Errorf("%s: got %v %q, want the answer of a broken rule", endpoint, got, reasons)
			}
			err := b.guard.StreamServerInterceptor()(nil, silentStream{ctx: t.Context()},
				&grpc.StreamServerInfo{FullMethod: "/a.B/C", IsServerStream: true, IsClientStream: true},
				func(any, grpc.ServerStream) error { t.Error("the handler ran"); return nil })
			var invalid *ruleset.InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("%s: the reason is %v", endpoint, err)
			}
			if text := invalid.Error(); !strings.Contains(text, "WithDescriptors") || !strings.Contains(text, "expect a reply") {
				t.Errorf("%s: the reason is %q", endpoint, text)
			}
			if text := warned.text(); strings.Count(text, "WithDescriptors") != 1 {
				t.Errorf("%s: after two calls observers got the warnings %q, want the reason once", endpoint, text)
			}
		}
	}
}

// If the program registers a method without a descriptor, the registration determines its shape.
func TestUnregistered_RegisteredWithoutDescriptor(t *testing.T) {
	t.Parallel()
	for name, impl := range map[string]any{"an implementation": &shop{}, "none": nil} {
		b := prepare(t, &shop{}, grpclock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC("/a.B/C"), Key: "k", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Skip}))
		b.server = grpc.NewServer(grpc.StreamInterceptor(b.guard.StreamServerInterceptor()))
		b.server.RegisterService(&grpc.ServiceDesc{ServiceName: "a.B", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{
			StreamName: "C", ClientStreams: true, ServerStreams: true, Handler: func(any, grpc.ServerStream) error { return nil },
		}}}, impl)
		b.checkAndServe()
		b.redis.Take("k", time.Minute)
		s, err := b.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/a.B/C")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.RecvMsg(new(emptypb.Empty)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, want the end of the stream", name, err)
		}
	}
}
