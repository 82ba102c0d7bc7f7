package adaptertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// loss tests calls whose lock is lost while their handler runs.
func loss(t *testing.T, a Adapter) {
	each(t, a, map[string]func(*testing.T, *bench){
		"handler gives up": lossGivesUp,
		"handler answers":  lossAnswers,
		"fail":             lossFails,
		"ignore":           lossIgnored,
		"max hold":         lossByMaxHold,
		"shutdown":         lossByShutdown,
	})
}

// fixLease gives a rule a fixed lease. Handlers of these tests let it expire with expireLease.
func fixLease(o failpolicy.OnLost) func(*ruleset.Rule) {
	return func(r *ruleset.Rule) { r.LeaseTime, r.OnLost = time.Hour, o }
}

// expireLease lets the lease of the lock of ctx expire.
func expireLease(ctx context.Context, b *bench) {
	if err := b.server.Hold(ctx).Refresh(context.WithoutCancel(ctx), time.Millisecond); err != nil {
		b.t.Errorf("Refresh: %v", err)
	}
}

// waitForLoss lets the lease expire and waits until the context is canceled.
func waitForLoss(ctx context.Context, b *bench) error {
	expireLease(ctx, b)
	return awaitLoss(ctx, b)
}

// awaitLoss waits until the context is canceled because of a loss.
func awaitLoss(ctx context.Context, b *bench) error {
	limit, cancel := testContext(b.t)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-limit.Done():
	}
	if err := context.Cause(ctx); !errors.Is(err, core.ErrLost) {
		b.t.Errorf("the cause of the context is %v", err)
	}
	return ctx.Err()
}

func lossGivesUp(_ *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) { return "", waitForLoss(ctx, b) })
	b.serveUnder(b.rule(fixLease(failpolicy.Cancel)))
	b.wantRefused(b.call(), failpolicy.Lost)
}

func lossAnswers(_ *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) { waitForLoss(ctx, b); return "paid", nil })
	b.serveUnder(b.rule(fixLease(failpolicy.Cancel)))
	if b.adapter.Streams {
		b.wantRefused(b.call(), failpolicy.Lost)
		return
	}
	b.wantOK(b.call(), "paid", "")
}

func lossFails(_ *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) { waitForLoss(ctx, b); return "paid", nil })
	b.serveUnder(b.rule(fixLease(failpolicy.Fail)))
	b.wantRefused(b.call(), failpolicy.Lost)
}

func lossIgnored(t *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) {
		expireLease(ctx, b)
		awaitEvent(t, "the end of the lease", func() bool { return !b.isTaken() })
		return "paid", ctx.Err()
	})
	b.serveUnder(b.rule(fixLease(failpolicy.Ignore)))
	b.wantOK(b.call(), "paid", "")
}

// lossByMaxHold tests a handler that runs for longer than the limit of its rule. The lock is taken until the handler has
// returned, and free after that, although its lease lasts for an hour.
func lossByMaxHold(t *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) {
		err := awaitLoss(ctx, b)
		if cause := context.Cause(ctx); !errors.Is(cause, core.ErrHeldTooLong) || !b.isTaken() {
			t.Errorf("the cause of the context is %v, and the lock is taken: %v", cause, b.isTaken())
		}
		return "", err
	})
	b.serveUnder(b.rule(func(r *ruleset.Rule) { r.MaxHold = 50 * time.Millisecond }))
	b.wantRefused(b.call(), failpolicy.Lost)
	if b.isTaken() {
		t.Error("the lock is still held after the call")
	}
}

// lossByShutdown tests a shutdown that does not wait for the handler. The client gets the status of a lost lock with a
// message about the shutdown.
func lossByShutdown(_ *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) {
		if err := b.locks.Close(canceledContext()); !errors.Is(err, core.ErrClosed) {
			b.t.Errorf("Close: %v", err)
		}
		return "", ctx.Err()
	})
	b.serveUnder(b.rule())
	got := b.call()
	b.wantRefused(got, failpolicy.Lost)
	if !strings.Contains(got.All, "The server was shut down while the request ran") {
		b.t.Errorf("the answer is %s, want the shutdown in it", got.All)
	}
}

// canceledContext returns a context that is canceled.
func canceledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
