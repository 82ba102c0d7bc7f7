package grpclock_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// shortLease gives a rule a lease that expires while its handler runs. It is long enough to acquire the lock
// on a busy machine.
func shortLease(r *ruleset.Rule) { r.LeaseTime = 3 * time.Second }

// fixedLease gives a rule a lease that does not expire before waitUntilLost shortens it.
func fixedLease(r *ruleset.Rule) { r.LeaseTime = time.Minute }

// wantLost checks that an answer reports a loss.
func wantLost(t *testing.T, err error) {
	t.Helper()
	reasons, retries := answer{err: err}.details()
	if status.Code(err) != codes.Internal || !slices.Equal(reasons, []string{"interlock/LOCK_LOST"}) || retries != 0 {
		t.Errorf("got %v with %q and %d hints, want INTERNAL, LOCK_LOST, none", err, reasons, retries)
	}
}

// waitUntilLost lets the lease of a handler expire now and waits until its context is canceled.
func waitUntilLost(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := grpclock.Hold(ctx).Refresh(context.WithoutCancel(ctx), time.Millisecond); err != nil {
		t.Errorf("Refresh: %v", err)
	}
	waitUntilCanceled(t, ctx)
}

// waitUntilCanceled waits until a handler's context is canceled.
func waitUntilCanceled(t *testing.T, ctx context.Context) {
	t.Helper()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), core.ErrLost) {
		t.Errorf("got cause %v, want core.ErrLost", context.Cause(ctx))
	}
}

func TestLoss_DiffersFromCancellation(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func(context.Context) error{
		"the context's error": context.Context.Err,
		"its cause":           context.Cause,
		"CANCELLED":           func(ctx context.Context) error { return status.FromContextError(ctx.Err()).Err() },
		"DEADLINE_EXCEEDED":   func(context.Context) error { return status.Error(codes.DeadlineExceeded, "too late") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, &shop{
				pay: func(ctx context.Context, _ *shoppb.PayRequest) (*shoppb.PayReply, error) {
					waitUntilLost(t, ctx)
					return nil, give(ctx)
				},
				track: func(_ *shoppb.PayRequest, stream shoppb.Orders_TrackServer) error {
					waitUntilLost(t, stream.Context())
					return give(stream.Context())
				},
			}, grpclock.WithRules(rule("Pay", fixedLease), rule("Track", fixedLease)))
			for _, kind := range []string{"Pay", "Track"} {
				wantLost(t, b.call(t.Context(), kind, kind).err)
			}
		})
	}
}

func TestLoss_KeepsErrorOfHandler(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{pay: func(ctx context.Context, _ *shoppb.PayRequest) (*shoppb.PayReply, error) {
		waitUntilLost(t, ctx)
		return nil, status.Error(codes.NotFound, "no such order")
	}}, grpclock.WithRules(rule("Pay", fixedLease)))
	if got := b.call(t.Context(), "Pay", "1"); status.Code(got.err) != codes.NotFound {
		t.Errorf("got %v, want NOT_FOUND", got.err)
	}
}

func TestLoss_BlockedReceive(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"key of the first message": "order:#{req.order_id}", "constant key": "orders"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures := make(chan error, 3)
			b := setup(t, &shop{chat: func(stream shoppb.Orders_ChatServer) error {
				_, err := stream.Recv()
				failures <- err
				_, err = stream.Recv() // blocks: the client sends one message and waits
				failures <- err
				_, again := stream.Recv()
				failures <- again
				return err
			}}, grpclock.WithRules(rule("Chat", shortLease, func(r *ruleset.Rule) { r.Key = key })))
			s, err := b.client.Chat(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Send(order("1")); err != nil {
				t.Fatal(err)
			}
			_, err = s.Recv()
			wantLost(t, err)
			if err := <-failures; err != nil {
				t.Errorf("the first receive: %v", err)
			}
			for range 2 {
				err := <-failures
				wantLost(t, err)
				if !errors.Is(err, core.ErrLost) {
					t.Errorf("%v does not match core.ErrLost", err)
				}
			}
		})
	}
}

func TestLoss_Send(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{track: func(_ *shoppb.PayRequest, stream shoppb.Orders_TrackServer) error {
		if err := stream.Send(reply("before")); err != nil {
			return err
		}
		waitUntilLost(t, stream.Context())
		return stream.Send(reply("after"))
	}}, grpclock.WithRules(rule("Track", fixedLease)))
	got := b.call(t.Context(), "Track", "1")
	wantLost(t, got.err)
	if !slices.Equal(got.replies, []string{"before"}) {
		t.Errorf("got %q, want the messages before the loss", got.replies)
	}
}

func TestLoss_UnsentMessageIsFailure(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{track: func(_ *shoppb.PayRequest, stream shoppb.Orders_TrackServer) error {
		waitUntilLost(t, stream.Context())
		_ = stream.Send(reply("never arrives"))
		return nil
	}}, grpclock.WithRules(rule("Track", fixedLease)))
	wantLost(t, b.call(t.Context(), "Track", "1").err)
}

func TestLoss_WatchdogNoticesForcedRelease(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	b := setup(t, &shop{chat: func(stream shoppb.Orders_ChatServer) error {
		close(started)
		_, err := stream.Recv()
		return err
	}}, grpclock.WithRules(rule("Chat", func(r *ruleset.Rule) { r.Key = "orders" })))
	s, err := b.client.Chat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-started
	if ok, err := b.locks.Lock("orders").ForceRelease(t.Context()); !ok || err != nil {
		t.Fatalf("ForceRelease: %v, %v", ok, err)
	}
	_, err = s.Recv()
	wantLost(t, err)
}

func TestLoss_StatusOfRule(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{chat: func(stream shoppb.Orders_ChatServer) error {
		_, err := stream.Recv()
		return err
	}}, grpclock.WithRules(rule("Chat", shortLease, func(r *ruleset.Rule) {
		r.Key, r.Message = "orders", "check the order"
		r.Status.Lost = failpolicy.Status{GRPC: failpolicy.Code(codes.DataLoss)}
	})))
	s, err := b.client.Chat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); status.Code(err) != codes.DataLoss || status.Convert(err).Message() != "check the order" {
		t.Errorf("got %v", err)
	}
}

func TestLoss_ConcurrentSendAndReceive(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{chat: func(stream shoppb.Orders_ChatServer) error {
		sent := make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				err = stream.Send(reply("x"))
			}
			sent <- err
		}()
		var err error
		for err == nil {
			_, err = stream.Recv()
		}
		<-sent
		return err
	}}, grpclock.WithRules(rule("Chat", shortLease)))
	s, err := b.client.Chat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for s.Send(order("1")) == nil {
		}
	}()
	for err == nil {
		_, err = s.Recv()
	}
	wantLost(t, err)
}

func TestLoss_CancellationIsNotLoss(t *testing.T) {
	t.Parallel()
	failures := make(chan error, 1)
	b := setup(t, &shop{chat: func(stream shoppb.Orders_ChatServer) error {
		if err := stream.Send(reply("ready")); err != nil {
			return err
		}
		_, err := stream.Recv()
		failures <- err
		return err
	}}, grpclock.WithRules(rule("Chat", func(r *ruleset.Rule) { r.Key = "orders" })))
	ctx, cancel := context.WithCancel(t.Context())
	s, err := b.client.Chat(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-failures; status.Code(err) != codes.Canceled || errors.Is(err, core.ErrLost) {
		t.Errorf("the handler received %v, want CANCELLED", err)
	}
	until(t, func() bool { return !b.held("orders") })
}

func TestLoss_ClientClosed(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{chat: func(stream shoppb.Orders_ChatServer) error {
		if err := stream.Send(reply("ready")); err != nil {
			return err
		}
		_, err := stream.Recv()
		return err
	}}, grpclock.WithRules(rule("Chat", func(r *ruleset.Rule) { r.Key = "orders" })))
	s, err := b.client.Chat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	_ = b.locks.Close(now)
	_, err = s.Recv()
	wantLost(t, err)
	if errors.Is(err, io.EOF) {
		t.Error("the call succeeded")
	}
}
