package aspect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestRun_RetryHint(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		lease     time.Duration
		taken     time.Duration
		held      time.Duration // hold time of an earlier call, 0 if there is none
		low, high time.Duration
	}{
		{"fixed lease: its rest", time.Minute, 3 * time.Second, 0, 2 * time.Second, 4 * time.Second},
		{"fixed lease: at most 5s", time.Minute, time.Hour, 0, 2500 * time.Millisecond, 5 * time.Second},
		{"watchdog: nothing known", ruleset.Watchdog, time.Hour, 0, time.Second, 2 * time.Second},
		{"watchdog: recent hold time", ruleset.Watchdog, time.Hour, 4 * time.Second, 3 * time.Second, 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				rule := pay()
				rule.WaitTime, rule.LeaseTime = ruleset.NoWait, tc.lease
				p := mustCompile(t, mustAspect(t, b.locks), rule)
				if tc.held > 0 {
					p.Run(t.Context(), &call{in: order{ID: "1"}, handle: func(context.Context, aspect.Grant) error {
						time.Sleep(tc.held) // virtual time
						return nil
					}})
				}
				b.redis.Take("order:42", tc.taken)
				out := p.Run(t.Context(), &call{in: order{ID: "42"}})
				want(t, "cause", out.Cause, failpolicy.Busy)
				if out.RetryAfter < tc.low || out.RetryAfter > tc.high {
					t.Errorf("got %s, want %s to %s", out.RetryAfter, tc.low, tc.high)
				}
			})
		})
	}
}

func TestRun_RetryHintFollowsTheHoldTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rule := pay()
		rule.WaitTime = ruleset.NoWait
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		for _, held := range append([]time.Duration{4 * time.Second}, make([]time.Duration, 30)...) {
			p.Run(t.Context(), &call{in: order{ID: "1"}, handle: func(context.Context, aspect.Grant) error {
				time.Sleep(held) // virtual time
				return nil
			}})
		}
		b.redis.Take("order:42", time.Hour)
		if got := p.Run(t.Context(), &call{in: order{ID: "42"}}).RetryAfter; got > 2*time.Second {
			t.Errorf("got %s after many short calls, want at most 2s", got)
		}
	})
}
