package jitter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
)

func TestOf(t *testing.T) {
	t.Parallel()
	least, most := time.Second, time.Duration(0)
	for range 1000 {
		d := jitter.Of(time.Second)
		least, most = min(least, d), max(most, d)
	}
	if least < 750*time.Millisecond || most > time.Second || least == most {
		t.Errorf("between %s and %s, want different durations between 750ms and 1s", least, most)
	}
	for _, d := range []time.Duration{0, -time.Second} {
		if got := jitter.Of(d); got != 0 {
			t.Errorf("Of(%s): got %s", d, got)
		}
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := jitter.Sleep(t.Context(), time.Second); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d < 750*time.Millisecond || d > time.Second {
			t.Errorf("slept for %s", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		start = time.Now()
		if err := jitter.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Millisecond {
			t.Errorf("got %v after %s, want context.DeadlineExceeded after 1ms", err, time.Since(start))
		}
	})
}
