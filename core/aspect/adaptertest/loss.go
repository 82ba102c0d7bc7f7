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

// loss is what becomes of a call whose lock ends under its handler.
func loss(t *testing.T, a Adapter) {
	each(t, a, map[string]func(*testing.T, *bench){
		"handler gives up": lossGivesUp,
		"handler answers":  lossAnswers,
		"fail":             lossFails,
		"ignore":           lossIgnored,
		"shutdown":         lossByShutdown,
	})
}

// leased has a lease that ends under the handlers of these tests, when they say so.
func leased(o failpolicy.OnLost) func(*ruleset.Rule) {
	return func(r *ruleset.Rule) { r.LeaseTime, r.OnLost = time.Hour, o }
}

// end lets the lease end.
func (b *bench) end(ctx context.Context) {
	if err := b.server.Hold(ctx).Refresh(context.WithoutCancel(ctx), time.Millisecond); err != nil {
		b.t.Errorf("Refresh: %v", err)
	}
}

// wait waits for the end of the lease, which is that of the context.
func (b *bench) wait(ctx context.Context) error {
	b.end(ctx)
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
	b.handler(func(ctx context.Context) (string, error) { return "", b.wait(ctx) })
	b.under(b.rule(leased(failpolicy.Cancel)))
	b.wantRefused(b.call(), failpolicy.Lost)
}

func lossAnswers(_ *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) { b.wait(ctx); return "paid", nil })
	b.under(b.rule(leased(failpolicy.Cancel)))
	if b.adapter.Streams {
		b.wantRefused(b.call(), failpolicy.Lost)
		return
	}
	b.wantOK(b.call(), "paid", "")
}

func lossFails(_ *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) { b.wait(ctx); return "paid", nil })
	b.under(b.rule(leased(failpolicy.Fail)))
	b.wantRefused(b.call(), failpolicy.Lost)
}

func lossIgnored(t *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) {
		b.end(ctx)
		until(t, "the end of the lease", func() bool { return !b.taken() })
		return "paid", ctx.Err()
	})
	b.under(b.rule(leased(failpolicy.Ignore)))
	b.wantOK(b.call(), "paid", "")
}

// lossByShutdown is a shutdown that does not wait for the handler. The answer is that of a loss,
// by which a client knows that the outcome is unknown, and says what has happened.
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

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
