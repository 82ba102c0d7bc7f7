package core_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
)

// What Refusal says is what Acquire does at once, without a question to Redis.
func TestRefusal_OfWaiters(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks(core.WithMaxWaitersPerKey(3), core.WithMaxWaiters(4))
		ctx, hold := acquired(t, t.Context(), locks.Lock("a"))
		_, other := acquired(t, t.Context(), locks.Lock("b"))
		refusals := func(what string, lock, limited, client error) {
			t.Helper()
			for _, c := range []struct {
				got, want error
			}{
				{locks.Lock("a").Refusal(t.Context(), core.WaitTime(time.Second)), lock},
				{locks.Lock("a").Refusal(t.Context()), lock},
				{locks.Lock("a").Refusal(t.Context(), core.MaxWaiters(2)), limited},
				{locks.Refusal(t.Context()), client},
				{locks.Lock("c").Refusal(t.Context()), client},
				{locks.Lock("a").Refusal(t.Context(), core.WaitTime(0)), nil},
				{locks.Lock("a").Refusal(ctx), nil}, // it enters again
				{locks.Refusal(ctx), nil},
				{locks.MultiLock("a", "c").Refusal(t.Context()), nil}, // takes them together first
			} {
				if c.got != c.want { //nolint:errorlint // the sentinel itself
					t.Errorf("%s: got %v, want %v", what, c.got, c.want)
				}
			}
		}
		wait := func(name string) {
			go func() { _, _, _ = locks.Lock(name).Acquire(t.Context(), core.WaitTime(time.Hour)) }()
			synctest.Wait()
		}
		refusals("nobody waits", nil, nil, nil)
		wait("a")
		wait("a")
		refusals("two wait", nil, core.ErrTooManyWaiters, nil)
		wait("a")
		refusals("the queue is full", core.ErrTooManyWaiters, core.ErrTooManyWaiters, nil)
		wait("b")
		refusals("the client is full", core.ErrTooManyWaiters, core.ErrTooManyWaiters, core.ErrTooManyWaiters)
		released(t, other)
		released(t, hold)
	})
}

func TestRefusal_OfRedisThatIsKnownToBeDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.New(t)
		locks := locksOn(t, srv.Client())
		asked := func() []error {
			return []error{locks.Lock("a").Refusal(t.Context()), locks.MultiLock("a", "b").Refusal(t.Context(), core.WaitTime(0)), locks.Refusal(t.Context())}
		}
		srv.Down()
		for _, err := range asked() {
			if err != nil {
				t.Errorf("nobody has asked yet: %v", err)
			}
		}
		_, _, err := locks.Lock("a").Acquire(t.Context())
		wantErr(t, err, core.ErrUnavailable)
		time.Sleep(time.Second) // the caller gives up a little before the silence is as long as the backend timeout
		begin := time.Now()
		for _, err := range asked() {
			wantErr(t, err, core.ErrUnavailable)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %s", took)
		}
		srv.Up()
		time.Sleep(time.Minute) // in the time of the bubble
		for _, err := range asked() {
			if err != nil {
				t.Errorf("it is up again: %v", err)
			}
		}
	})
}

func TestRefusal_OfTheClientAndTheName(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		wantErr(t, locks.Lock("").Refusal(t.Context()), core.ErrInvalid)
		wantErr(t, locks.Lock(strings.Repeat("x", 10_000)).Refusal(t.Context()), core.ErrInvalid)
		wantErr(t, locks.Lock("a").Refusal(t.Context(), core.WaitTime(-1)), core.ErrInvalid)
		wantErr(t, locks.Refusal(t.Context(), core.LeaseTime(-1)), core.ErrInvalid)
		if err := locks.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		wantErr(t, locks.Lock("a").Refusal(t.Context()), core.ErrClosed)
		wantErr(t, locks.Refusal(t.Context()), core.ErrClosed)
	})
}
