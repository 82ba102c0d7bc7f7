package grpclock_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

func TestStream_FirstMessageIsReplayed(t *testing.T) {
	t.Parallel()
	want := map[string][]string{"Track": {"packed 1", "sent 1"}, "Import": {"imported 1,2,3"}, "Chat": {"re 1", "re 2", "re 3"}}
	for kind, replies := range want {
		b := setup(t, &shop{}, grpclock.WithRules(rule(kind)))
		b.call(t.Context(), kind, "1", "2", "3").check(t, replies...)
	}
}

func TestStream_EndYieldsNoKey(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Import", "Chat"} {
		b := setup(t, &shop{}, grpclock.WithRules(rule(kind)))
		if got := b.call(t.Context(), kind); status.Code(got.err) != codes.InvalidArgument || b.shop.ran.Load() != 0 {
			t.Errorf("%s: got %v, ran %d; want INVALID_ARGUMENT and no run", kind, got.err, b.shop.ran.Load())
		}
	}
}

func TestStream_EndIsReplayed(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Import", func(r *ruleset.Rule) { r.OnKey = failpolicy.Proceed })))
	b.call(t.Context(), "Import").check(t, "imported ")
}

func TestStream_NoLockBeforeFirstMessage(t *testing.T) {
	t.Parallel()
	by := rule("Chat", func(r *ruleset.Rule) { r.Name, r.Key = "tenant", `tenant:#{metadata["x-tenant"]}` })
	of := rule("Chat", func(r *ruleset.Rule) { r.Name = "order" })
	b := setup(t, &shop{}, grpclock.WithRules(by, of))
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "a"))
	s, err := b.client.Chat(ctx)
	if err != nil {
		t.Fatal(err)
	}
	other := b.call(metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "a"), "Chat", "9")
	other.check(t, "re 9") // the call without a message holds no lock
	cancel()
	if _, err := s.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("got %v, want CANCELLED", err)
	}
}

func TestStream_MetadataKeyAndServerFirst(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{chat: func(stream shoppb.Orders_ChatServer) error {
		if err := stream.Send(reply("hello")); err != nil {
			return err
		}
		req, err := stream.Recv()
		if err != nil {
			return err
		}
		return stream.Send(reply("re " + req.GetOrderId()))
	}}, grpclock.WithServerFirst(path("Chat")),
		grpclock.WithRules(rule("Chat", func(r *ruleset.Rule) { r.Key = `order:#{metadata["x-order"]}` })))
	s, err := b.client.Chat(metadata.AppendToOutgoingContext(t.Context(), "x-order", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Recv(); err != nil || got.GetReceipt() != "hello" {
		t.Fatalf("got %v, %v before anything was sent, want hello", got, err)
	}
	if !b.held("order:1") {
		t.Error("the lock is not held while the handler runs")
	}
	if err := errors.Join(s.Send(order("5")), s.CloseSend()); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Recv(); err != nil || got.GetReceipt() != "re 5" {
		t.Errorf("got %v, %v; want re 5", got, err)
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
}

func TestStream_RefusedWhileClientSends(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Import", func(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip })))
	b.redis.Take("order:1", time.Minute)
	s, err := b.client.Import(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		err = s.Send(order("1"))
	}
	if !errors.Is(err, io.EOF) {
		t.Fatalf("Send: got %v, want io.EOF", err)
	}
	if got, err := s.CloseAndRecv(); err != nil || got.GetReceipt() != "" {
		t.Errorf("got %v, %v; want one empty reply", got, err)
	}
}

func TestStream_PanicOfReceive(t *testing.T) {
	t.Parallel()
	b := prepare(t, &shop{}, grpclock.WithRules(rule("Chat", func(r *ruleset.Rule) { r.Key = "chat" })))
	b.server = b.newServer(nil, []grpc.StreamServerInterceptor{
		func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return handler(srv, panickingStream{stream})
		},
	})
	shoppb.RegisterOrdersServer(b.server, b.shop)
	b.serve()
	got := b.call(t.Context(), "Chat", "1")
	if status.Convert(got.err).Message() != "panic: in another stream" {
		t.Errorf("got %v, want the answer of the recovery around the guard", got.err)
	}
	if b.held("chat") {
		t.Error("the lock is still held")
	}
}

type panickingStream struct{ grpc.ServerStream }

func (panickingStream) RecvMsg(any) error { panic("in another stream") }

// Messages of streams that wait do not use up the window of the connection, which the stream that has the lock needs: grpc-go
// gives it back as they arrive.
func TestStream_WaitersLeaveTheWindow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ streams, messages int }{
		"one of 2 MiB": {1, 32}, "twenty of 64 KiB": {20, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered := make(chan struct{}, 1)
			b := setup(t, &shop{importAll: func(stream shoppb.Orders_ImportServer) error {
				for messages := 0; ; messages++ {
					req, err := stream.Recv()
					if errors.Is(err, io.EOF) {
						return stream.SendAndClose(reply("imported"))
					}
					if err != nil {
						return err
					}
					if messages == 0 && req.GetOrderId() == "holder" {
						entered <- struct{}{}
					}
				}
			}}, grpclock.WithRules(rule("Import", func(r *ruleset.Rule) { r.Key, r.WaitTime = "one", ruleset.WaitForever })))
			send := func(s shoppb.Orders_ImportClient, ids ...string) {
				for _, id := range ids {
					if err := s.Send(order(id)); err != nil {
						t.Error(err)
					}
				}
			}
			finish := func(s shoppb.Orders_ImportClient) {
				if got, err := s.CloseAndRecv(); err != nil || got.GetReceipt() != "imported" {
					t.Errorf("got %v, %v", got, err)
				}
			}
			begin := func() shoppb.Orders_ImportClient {
				s, err := b.client.Import(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			holder, large := begin(), strings.Repeat("x", 64<<10)
			send(holder, "holder")
			<-entered
			var all sync.WaitGroup
			for range tt.streams {
				waiter := begin()
				all.Go(func() {
					send(waiter, slices.Repeat([]string{large}, tt.messages)...)
					finish(waiter)
				})
			}
			until(t, func() bool { return b.locks.Stats().Waiters == tt.streams })
			start := time.Now()
			send(holder, slices.Repeat([]string{large}, 64)...)
			finish(holder)
			t.Logf("the holder needed %d ms for the rest of its messages", time.Since(start).Milliseconds())
			all.Wait()
		})
	}
}
