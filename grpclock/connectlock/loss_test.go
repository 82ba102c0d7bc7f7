package connectlock_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

// shortLease gives a rule a lease that expires while its handler runs. It is long enough to acquire the lock
// on a busy machine.
func shortLease(r *ruleset.Rule) { r.LeaseTime = 3 * time.Second }

// fixedLease gives a rule a lease that does not expire before waitUntilLost shortens it.
func fixedLease(r *ruleset.Rule) { r.LeaseTime = time.Minute }

// constant gives a rule a key that needs no message.
func constant(r *ruleset.Rule) { r.Key = "orders" }

// wantLost checks that an answer reports a loss.
func wantLost(t *testing.T, got answer) {
	t.Helper()
	reasons, hints := got.reasons()
	if codeOf(got) != connect.CodeInternal || !slices.Equal(reasons, []string{"interlock/LOCK_LOST"}) || hints != 0 {
		t.Errorf("got %v with %q and %d hints, want internal, LOCK_LOST, none", got.err, reasons, hints)
	}
}

// waitUntilLost lets the lease of a handler expire now and waits until its context is canceled.
func waitUntilLost(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := connectlock.Hold(ctx).Refresh(context.WithoutCancel(ctx), time.Millisecond); err != nil {
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
		"canceled":            func(context.Context) error { return connect.NewError(connect.CodeCanceled, errors.New("gone")) },
		"deadline":            func(context.Context) error { return connect.NewError(connect.CodeDeadlineExceeded, errors.New("late")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, uniformShop(func(ctx context.Context) error { waitUntilLost(t, ctx); return give(ctx) }), rules(fixedLease))
			b.callAll(func(t *testing.T, _, _ string, got answer) { wantLost(t, got) })
		})
	}
}

func TestLoss_BlockedReceive(t *testing.T) {
	t.Parallel()
	for protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			failures := make(chan error, 3)
			b := setup(t, &shop{chat: func(_ context.Context, stream *chatStream) error {
				_, err := stream.Receive()
				failures <- err
				_, err = stream.Receive() // blocks: the client sends one message and waits
				failures <- err
				_, again := stream.Receive()
				failures <- again
				return err
			}}, connectlock.WithRules(rule("Chat", shortLease)))
			s := b.chat(t.Context(), protocol)
			defer s.CloseResponse()
			if err := s.Send(order("1")); err != nil {
				t.Fatal(err)
			}
			wantLost(t, drain(s))
			_ = s.CloseRequest()
			if err := <-failures; err != nil {
				t.Errorf("the first receive: %v", err)
			}
			for range 2 {
				err := <-failures
				wantLost(t, failedAnswer(err))
				if !errors.Is(err, core.ErrLost) {
					t.Errorf("%v does not match core.ErrLost", err)
				}
			}
		})
	}
}

// Over HTTP/1.1, a server cannot end a call while the client sends. The client is informed of the loss after its
// next message.
func TestLoss_HTTP1(t *testing.T) {
	t.Parallel()
	received := make(chan error, 1)
	b := setup(t, &shop{importAll: func(_ context.Context, stream *importStream) (*receipt, error) {
		for stream.Receive() { // until it fails
		}
		received <- stream.Err()
		return nil, stream.Err()
	}}, connectlock.WithRules(rule("Import", shortLease)))
	old := httptest.NewServer(b.shop.handler(connect.WithInterceptors(b.guard.Interceptor())))
	defer old.Close()
	s := connect.NewClient[request, receipt](old.Client(), old.URL+path("Import")).CallClientStream(t.Context())
	if err := s.Send(order("1")); err != nil {
		t.Fatal(err)
	}
	if err := <-received; !errors.Is(err, core.ErrLost) {
		t.Errorf("the handler received %v, want the loss", err)
	}
	_ = s.Send(order("2"))
	wantLost(t, singleAnswer(s.CloseAndReceive()))
}

func TestLoss_CancellationIsNotLoss(t *testing.T) {
	t.Parallel()
	for protocol := range protocols {
		failures := make(chan error, 1)
		b := setup(t, &shop{chat: func(_ context.Context, stream *chatStream) error {
			if err := stream.Send(reply("ready")); err != nil {
				return err
			}
			_, err := stream.Receive()
			failures <- err
			return err
		}}, connectlock.WithRules(rule("Chat", constant)))
		ctx, cancel := context.WithCancel(t.Context())
		s := b.chat(ctx, protocol)
		if _, err := s.Receive(); err != nil {
			t.Fatal(err)
		}
		cancel()
		if got := drain(s); codeOf(got) != connect.CodeCanceled {
			t.Errorf("%s: the client got %v, want canceled", protocol, got.err)
		}
		_ = s.CloseResponse()                                                                                             // only this notifies the server over HTTP/2 of the standard library
		if err := <-failures; err == nil || errors.Is(err, core.ErrLost) || connect.CodeOf(err) == connect.CodeInternal { // Connect may see a canceled call or a broken one
			t.Errorf("%s: the handler received %v, want that the client is gone", protocol, err)
		}
		until(t, func() bool { return !b.held("orders") })
	}
}
