package grpclock_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// setupRunning returns a bench with a call whose handler runs until finish is called.
func setupRunning(t *testing.T) (b *bench, finish func(), answered <-chan answer) {
	t.Helper()
	started, proceed, done := make(chan struct{}), make(chan struct{}), make(chan answer, 1)
	b = setup(t, &shop{pay: func(context.Context, *shoppb.PayRequest) (*shoppb.PayReply, error) {
		close(started)
		<-proceed
		return reply("finished"), nil
	}}, grpclock.WithRules(rule("Pay")))
	go func() { done <- b.call(t.Context(), "Pay", "1") }()
	<-started
	return b, func() { close(proceed) }, done
}

func TestShutdown_GracefulStop(t *testing.T) {
	t.Parallel()
	b, finish, done := setupRunning(t)
	stopped := make(chan struct{})
	go func() { b.server.GracefulStop(); close(stopped) }()
	until(t, func() bool { return status.Code(b.call(t.Context(), "Free", "2").err) == codes.Unavailable })
	if !b.held("order:1") {
		t.Error("the lock was released under the handler")
	}
	finish()
	got := <-done
	got.check(t, "finished")
	<-stopped
	if b.held("order:1") {
		t.Error("the lock is still held after the stop")
	}
}

func TestShutdown_Stop(t *testing.T) {
	t.Parallel()
	b, finish, done := setupRunning(t)
	stopped := make(chan struct{})
	go func() { b.server.Stop(); close(stopped) }()
	if got := <-done; status.Code(got.err) != codes.Unavailable {
		t.Errorf("the client got %v, want UNAVAILABLE", got.err)
	}
	if !b.held("order:1") {
		t.Error("the lock was released under the handler")
	}
	finish()
	<-stopped // Stop waits for handlers
	if b.held("order:1") {
		t.Error("the lock is still held after the stop")
	}
}

func TestShutdown_ClientDisconnects(t *testing.T) {
	t.Parallel()
	started, proceed := make(chan struct{}), make(chan struct{})
	b := setup(t, &shop{pay: func(ctx context.Context, _ *shoppb.PayRequest) (*shoppb.PayReply, error) {
		close(started)
		<-ctx.Done()
		<-proceed
		return nil, ctx.Err()
	}}, grpclock.WithRules(rule("Pay")))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan answer, 1)
	go func() { done <- b.call(ctx, "Pay", "1") }()
	<-started
	cancel()
	<-done
	if !b.held("order:1") {
		t.Error("the lock was released under the handler")
	}
	close(proceed)
	until(t, func() bool { return !b.held("order:1") })
}
