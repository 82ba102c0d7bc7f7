package grpclock_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

func TestHold_InHandler(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Pay"), rule("Track")))
	look := func(ctx context.Context) {
		if hold := grpclock.Hold(ctx); hold.Key() != "order:1" {
			t.Errorf("got the lock %q", hold.Key())
		}
		if _, ok := core.Held(ctx, "order:1"); !ok {
			t.Error("core.Held does not find it")
		}
		if grpclock.Hold(core.Detach(ctx)) != nil {
			t.Error("a detached context has a hold")
		}
	}
	b.shop.pay = func(ctx context.Context, _ *shoppb.PayRequest) (*shoppb.PayReply, error) {
		look(ctx)
		return reply(""), nil
	}
	b.shop.track = func(_ *shoppb.PayRequest, stream shoppb.Orders_TrackServer) error {
		look(stream.Context())
		return nil
	}
	b.call(t.Context(), "Pay", "1").check(t, "")
	b.call(t.Context(), "Track", "1").check(t)
}

func TestHold_WithoutLock(t *testing.T) {
	t.Parallel()
	hold := grpclock.Hold(t.Context())
	if hold != nil || hold.Key() != "" {
		t.Errorf("got the lock %q", hold.Key())
	}
	if err := hold.Release(t.Context()); !errors.Is(err, core.ErrNotHeld) {
		t.Errorf("its release: got %v, want ErrNotHeld", err)
	}
	if ctx := t.Context(); grpclock.Caller(ctx) != ctx {
		t.Error("Caller without a lock is not the context itself")
	}
}

func TestHold_ReleasedEarlyByUnaryHandler(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Pay")))
	b.shop.pay = func(ctx context.Context, _ *shoppb.PayRequest) (*shoppb.PayReply, error) {
		hold := grpclock.Hold(ctx)
		if err := hold.Release(ctx); err != nil {
			return nil, err
		}
		if b.held("order:1") {
			t.Error("the lock is still held")
		}
		if err := grpclock.Caller(ctx).Err(); err != nil {
			t.Errorf("the context for the rest of the handler has ended: %v", err)
		}
		return reply("free"), nil
	}
	b.call(t.Context(), "Pay", "1").check(t, "free")
}

func TestHold_ReleasedEarlyByStreamHandler(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Chat")))
	b.shop.chat = func(stream shoppb.Orders_ChatServer) error {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		hold := grpclock.Hold(stream.Context())
		if err := hold.Release(stream.Context()); err != nil {
			return err
		}
		req, err := stream.Recv()
		if err != nil {
			return err
		}
		return stream.Send(reply("still " + req.GetOrderId()))
	}
	b.call(t.Context(), "Chat", "1", "2").check(t, "still 2")
}

func TestHold_ReleasedDuringReceive(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Chat", func(r *ruleset.Rule) { r.Key = "orders" })))
	b.shop.chat = func(stream shoppb.Orders_ChatServer) error {
		hold := grpclock.Hold(stream.Context())
		released := make(chan error, 1)
		go func() {
			released <- errors.Join(hold.Release(context.WithoutCancel(stream.Context())), stream.Send(reply("released")))
		}()
		req, err := stream.Recv()
		if err := errors.Join(err, <-released); err != nil {
			return err
		}
		return stream.Send(reply("then " + req.GetOrderId()))
	}
	s, err := b.client.Chat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got answer
	for _, id := range []string{"1", ""} {
		r, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		got.add(r)
		if id != "" {
			if err := s.Send(order(id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(got.replies, []string{"released", "then 1"}) {
		t.Errorf("got %q", got.replies)
	}
}

func TestHold_HandedOver(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Pay")))
	kept := make(chan *core.Hold, 1)
	b.shop.pay = func(ctx context.Context, _ *shoppb.PayRequest) (*shoppb.PayReply, error) {
		hold := grpclock.Hold(ctx)
		_, later := hold.Handover()
		kept <- later
		return reply("accepted"), nil
	}
	b.call(t.Context(), "Pay", "1").check(t, "accepted")
	if !b.held("order:1") {
		t.Error("the lock was released with the call")
	}
	if err := (<-kept).Release(t.Context()); err != nil {
		t.Error(err)
	}
}
