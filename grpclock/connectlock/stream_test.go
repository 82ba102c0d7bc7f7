package connectlock_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

func TestStream_MetadataKeyAndServerFirst(t *testing.T) {
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

func TestStream_RefusedWhileClientSends(t *testing.T) {
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
		singleAnswer(s.CloseAndReceive()).check(t, "")
	}
}
