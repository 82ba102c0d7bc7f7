package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/redistest"
)

// What Refusal says is what Acquire does at once, without a question to Redis.
func TestRefusal_OfWaiters(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(core.WithMaxWaiters(2))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("a"))
		refusals := func(what string, want error) {
			t.Helper()
			for _, c := range []struct {
				got, want error
			}{
				{locks.ForAdapters().Refusal(t.Context(), core.WaitTime(time.Second)), want},
				{locks.ForAdapters().Refusal(t.Context()), want},
				{locks.ForAdapters().Refusal(t.Context(), core.WaitTime(0)), nil},
				{locks.ForAdapters().Refusal(ctx), nil}, // it may enter again
			} {
				if c.got != c.want { //nolint:errorlint // the sentinel itself
					t.Errorf("%s: got %v, want %v", what, c.got, c.want)
				}
			}
		}
		wait := func() {
			go func() { _, _, _ = locks.Lock("a").Acquire(t.Context(), core.WaitTime(time.Hour)) }()
			synctest.Wait()
		}
		refusals("no caller waits", nil)
		wait()
		refusals("one waits", nil)
		wait()
		refusals("the client is full", core.ErrTooManyWaiters)
		locktest.MustRelease(t, hold)
	})
}

func TestRefusal_OfRedisThatIsKnownToBeDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.New(t)
		locks := locktest.NewClient(t, srv.Client())
		srv.Down()
		locktest.Must(t, locks.ForAdapters().Refusal(t.Context())) // no call has asked yet
		_, _, err := locks.Lock("a").Acquire(t.Context())
		locktest.WantErr(t, err, core.ErrUnavailable)
		time.Sleep(time.Second) // the caller gives up a little before the silence is as long as the backend timeout
		begin := time.Now()
		locktest.WantErr(t, locks.ForAdapters().Refusal(t.Context()), core.ErrUnavailable)
		locktest.WantSame(t, "it took", time.Since(begin), 0)
		srv.Up()
		time.Sleep(time.Minute) // in the time of the bubble
		locktest.Must(t, locks.ForAdapters().Refusal(t.Context()))
	})
}

func TestRefusal_OfTheClient(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		locktest.WantErr(t, locks.ForAdapters().Refusal(t.Context(), core.LeaseTime(-1)), core.ErrInvalid)
		locktest.Must(t, locks.Close(context.Background()))
		locktest.WantErr(t, locks.ForAdapters().Refusal(t.Context()), core.ErrClosed)
	})
}
