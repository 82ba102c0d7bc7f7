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

// loss tests calls whose lock ends under their handler.
func loss(t *testing.T, a Adapter) {
	each(t, a, map[string]func(*testing.T, *bench){
		"handler gives up": lossGivesUp,
		"handler answers":  lossAnswers,
		"fail":             lossFails,
		"ignore":           lossIgnored,
		"shutdown":         lossByShutdown,
	})
}

// leased gives a rule a fixed lease, which handlers of these tests end with endLease.
func leased(o failpolicy.OnLost) func(*ruleset.Rule) {
	return func(r *ruleset.Rule) { r.LeaseTime, r.OnLost = time.Hour, o }
}

// endLease lets the lease of the lock of ctx expire.
func endLease(ctx context.Context, b *bench) {
	if err := b.server.Hold(ctx).Refresh(context.WithoutCancel(ctx), time.Millisecond); err != nil {
		b.t.Errorf("Refresh: %v", err)
	}
}

// waitForLoss lets the lease expire, and waits until the context ends with it.
func waitForLoss(ctx context.Context, b *bench) error {
	endLease(ctx, b)
	patient, done := patience(b.t)
	defer done()
	select {
	case <-ctx.Done():
	case <-patient.Done():
	}
	if err := context.Cause(ctx); !errors.Is(err, core.ErrLost) {
		b.t.Errorf("the context ended with %v", err)
	}
	return ctx.Err()
}

func lossGivesUp(_ *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) { return "", waitForLoss(ctx, b) })
	b.under(b.rule(leased(failpolicy.Cancel)))
	b.wantRefused(b.call(), failpolicy.Lost)
}

func lossAnswers(_ *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) { waitForLoss(ctx, b); return "paid", nil })
	b.under(b.rule(leased(failpolicy.Cancel)))
	if b.adapter.Streams {
		b.wantRefused(b.call(), failpolicy.Lost)
		return
	}
	b.wantOK(b.call(), "paid", "")
}

func lossFails(_ *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) { waitForLoss(ctx, b); return "paid", nil })
	b.under(b.rule(leased(failpolicy.Fail)))
	b.wantRefused(b.call(), failpolicy.Lost)
}

func lossIgnored(t *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) {
		endLease(ctx, b)
		until(t, "the end of the lease", func() bool { return !b.taken() })
		return "paid", ctx.Err()
	})
	b.under(b.rule(leased(failpolicy.Ignore)))
	b.wantOK(b.call(), "paid", "")
}

// lossByShutdown tests a shutdown that does not wait for the handler. The client gets the answer of a loss, by which it
// knows that the outcome is unknown, with a text about the shutdown.
func lossByShutdown(_ *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) {
		if err := b.locks.Close(ended()); !errors.Is(err, core.ErrClosed) {
			b.t.Errorf("Close: %v", err)
		}
		return "", ctx.Err()
	})
	b.under(b.rule())
	got := b.call()
	b.wantRefused(got, failpolicy.Lost)
	if !strings.Contains(got.All, "The server was shut down while the request ran") {
		b.t.Errorf("the answer is %s, want the shutdown in it", got.All)
	}
}

// ended returns a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
