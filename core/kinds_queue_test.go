package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// As long as a client holds a name, or waits for it, it is of one kind: another one is a
// mistake, which is found before Redis is asked.
func TestKinds_OneForEachName(t *testing.T) {
	t.Parallel()
	calls := map[string]func(locks *core.Client) error{
		"try": func(locks *core.Client) error {
			return locks.FencedLock("k").Do(context.Background(), func(context.Context) error { return nil }, core.WaitTime(0))
		},
		"wait": func(locks *core.Client) error {
			return locks.FencedLock("k").Do(context.Background(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
		},
		"refusal": func(locks *core.Client) error { return locks.FencedLock("k").Refusal(context.Background()) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				locks, sent := b.counted()
				if err := call(locks); err != nil {
					t.Fatalf("a name that nobody uses: %v", err)
				}
				_, hold := acquired(t, t.Context(), locks.Lock("k"))
				before := sent.Hits()
				wantErr(t, call(locks), core.ErrInvalid)
				if n := sent.Hits() - before; n != 0 {
					t.Errorf("%d scripts", n)
				}
				released(t, hold)
				if err := call(locks); err != nil {
					t.Errorf("after the release: %v", err)
				}
				b.take("k", stranger, time.Hour)
				ctx, cancel := context.WithCancel(t.Context())
				done := busyCallers(ctx, locks, "k", 1)
				waiters(t, locks, 1)
				wantErr(t, call(locks), core.ErrInvalid)
				cancel()
				<-done
				if s := locks.Stats(); s != (core.Stats{}) {
					t.Errorf("stats: got %+v", s)
				}
			})
		})
	}
}

// So it is for one of several keys.
func TestKinds_OneForEachNameOfAMultiLock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		_, hold := acquired(t, t.Context(), locks.SpinLock("b"))
		for _, wait := range []time.Duration{0, time.Minute} {
			_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(wait))
			wantErr(t, err, core.ErrInvalid)
		}
		wantErr(t, locks.MultiLock("a", "b").Refusal(t.Context()), core.ErrInvalid)
		b.wantGone("a")
		released(t, hold)
		_, both := acquired(t, t.Context(), locks.MultiLock("a", "b"))
		released(t, both)
	})
}
