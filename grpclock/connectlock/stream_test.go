package connectlock_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

func TestFirstMessage_EndOfTheStreamYieldsNoKey(t *testing.T) {
	t.Parallel()
	for protocol := range protocols {
		for _, kind := range []string{"Import", "Chat"} {
			b := setup(t, &shop{}, connectlock.WithRules(rule(kind)))
			if got := b.call(t.Context(), protocol, kind, nil); codeOf(got) != connect.CodeInvalidArgument || b.shop.ran.Load() != 0 {
				t.Errorf("%s, %s: got %v, ran %d; want invalid_argument and no run", protocol, kind, got.err, b.shop.ran.Load())
			}
		}
	}
}

func TestFirstMessage_EndOfTheStreamIsReplayedToAHandlerThatRunsUnlocked(t *testing.T) {
	t.Parallel()
	for protocol := range protocols {
		b := setup(t, &shop{}, connectlock.WithRules(rule("Import", func(r *ruleset.Rule) { r.OnKey = failpolicy.Proceed })))
		b.call(t.Context(), protocol, "Import", nil).check(t, "imported ")
	}
}

func TestFirstMessage_NothingIsLockedWhileTheClientIsSilent(t *testing.T) {
	t.Parallel()
	by := rule("Chat", func(r *ruleset.Rule) { r.Name, r.Key = "tenant", `tenant:#{metadata["x-tenant"]}` })
	of := rule("Chat", func(r *ruleset.Rule) { r.Name = "order" })
	for protocol := range protocols {
		b := setup(t, &shop{}, connectlock.WithRules(by, of))
		ctx, cancel := context.WithCancel(t.Context())
		s := b.chat(ctx, protocol, "x-tenant", "a")
		other := b.call(t.Context(), protocol, "Chat", []string{"9"}, "x-tenant", "a")
		other.check(t, "re 9") // the silent one holds nothing
		cancel()
		if got := drain(s); codeOf(got) != connect.CodeCanceled {
			t.Errorf("%s: got %v, want canceled", protocol, got.err)
		}
	}
}

func TestMetadataKey_LetsTheServerSpeakFirst(t *testing.T) {
	t.Parallel()
	for protocol := range protocols {
		b := setup(t, &shop{chat: func(_ context.Context, stream *chatStream) error {
			if err := stream.Send(reply("hello")); err != nil {
				return err
			}
			req, err := stream.Receive()
			if err != nil {
				return err
			}
			return stream.Send(reply("re " + req.GetOrderId()))
		}}, connectlock.WithServerFirst(path("Chat")),
			connectlock.WithRules(rule("Chat", func(r *ruleset.Rule) { r.Key = `order:#{metadata["x-order"]}` })))
		s := b.chat(t.Context(), protocol, "x-order", "1")
		if got, err := s.Receive(); err != nil || got.GetReceipt() != "hello" {
			t.Fatalf("%s: got %v, %v before anything was sent, want hello", protocol, got, err)
		}
		if !b.held("order:1") {
			t.Error("the lock is not held while the handler runs")
		}
		if err := errors.Join(s.Send(order("5")), s.CloseRequest()); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Receive(); err != nil || got.GetReceipt() != "re 5" {
			t.Errorf("got %v, %v; want re 5", got, err)
		}
		if _, err := s.Receive(); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end", err)
		}
	}
}

func TestRefusedStream_EndsThoughTheClientGoesOnSending(t *testing.T) {
	t.Parallel()
	for protocol := range protocols {
		b := setup(t, &shop{}, connectlock.WithRules(rule("Import", func(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip })))
		b.redis.Take("order:1", time.Minute)
		s := b.client(protocol, "Import").CallClientStream(t.Context())
		var err error
		for err == nil {
			err = s.Send(order("1"))
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: Send: got %v, want io.EOF", protocol, err)
		}
		single(s.CloseAndReceive()).check(t, "")
	}
}

// panicking is a stream of somebody else whose Receive panics.
type panicking struct{ connect.StreamingHandlerConn }

func (panicking) Receive(any) error { panic("in a stream of somebody else") }

type panics struct{ passing }

func (panics) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error { return next(ctx, panicking{conn}) }
}

func TestReceive_OfAHandlerPanicsInTheHandlersGoroutine(t *testing.T) {
	t.Parallel()
	b := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Chat", constant)))
	b.serveHandler(b.shop.handler(recovering(), connect.WithInterceptors(panics{}, b.guard.Interceptor())))
	if got := b.call(t.Context(), "connect", "Chat", []string{"1"}); !isRecovered(got, "in a stream of somebody else") {
		t.Errorf("got %v, want what the recovery outside makes of the panic", got.err)
	}
	if b.held("orders") {
		t.Error("the lock is still held")
	}
}
