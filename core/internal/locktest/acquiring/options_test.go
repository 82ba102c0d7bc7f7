package acquiring_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A number without a unit is nanoseconds in Go. The error says so, and names the limit.
func TestTimes_ErrorAsksForAMissingUnit(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("held"))
		acquire := func(opt core.AcquireOption) error {
			_, _, err := locks.Lock("k").Acquire(t.Context(), opt)
			return err
		}
		configure := func(opts ...core.Option) error {
			_, err := core.New(locktest.Nowhere(t), opts...)
			return err
		}
		for what, try := range map[string]func(d time.Duration) error{
			"WaitTime":           func(d time.Duration) error { return acquire(core.WaitTime(d)) },
			"LeaseTime":          func(d time.Duration) error { return acquire(core.LeaseTime(d)) },
			"MaxHold":            func(d time.Duration) error { return acquire(core.MaxHold(d)) },
			"Refresh":            func(d time.Duration) error { return hold.Refresh(t.Context(), d) },
			"Leave":              func(d time.Duration) error { return hold.Leave(t.Context(), d) },
			"WithWatchdog":       func(d time.Duration) error { return configure(core.WithWatchdog(d)) },
			"WithBackendTimeout": func(d time.Duration) error { return configure(core.WithBackendTimeout(d)) },
			"WithReplicaAcks":    func(d time.Duration) error { return configure(core.WithReplicaAcks(core.AcksAll, d)) },
		} {
			for d, hint := range map[time.Duration]string{
				3:      " (is a unit missing? 3*time.Second)",
				3_000:  " (is a unit missing? 3000*time.Millisecond or 3000*time.Second)",
				90_000: " (is a unit missing? 90000*time.Millisecond)",
				-3:     "",
			} {
				err := try(d)
				locktest.WantErr(t, err, core.ErrInvalid)
				if err == nil {
					continue
				}
				if text := err.Error(); !strings.HasSuffix(text, hint) || hint == "" && strings.Contains(text, "unit") {
					t.Errorf("%s(%d): got %q, want it to end in %q", what, d, text, hint)
				}
			}
		}
		locktest.MustRelease(t, hold)
	})
}

// A fixed lease ends by itself, and a number without holders is not held: neither has a limit.
func TestMaxHold_Invalid(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		limit, lease := core.MaxHold(time.Minute), core.LeaseTime(10*time.Second)
		acquire := func(l core.Lock, opts ...core.AcquireOption) error {
			_, _, err := l.Acquire(t.Context(), opts...)
			return err
		}
		both := "MaxHold(1m0s) with LeaseTime(10s): a fixed lease ends by itself: want one of them"
		for name, tt := range map[string]struct {
			err  error
			want string
		}{
			"limit, lease": {acquire(locks.Lock("k"), limit, lease), both},
			"lease, limit": {acquire(locks.Lock("k"), lease, limit), both},
			"Redlock":      {acquire(core.Redlock("k", locks), limit, lease), both},
			"Refusal":      {locks.ForAdapters().Refusal(t.Context(), limit, lease), both},
			"semaphore":    {locks.PlainSemaphore("k").Acquire(t.Context(), 1, limit), "MaxHold for a plain semaphore: nothing is held"},
			"latch":        {locks.CountDownLatch("k").Await(t.Context(), limit), "MaxHold for a latch: nothing is held"},
		} {
			locktest.WantErr(t, tt.err, core.ErrInvalid)
			if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
				t.Errorf("%s: got %v, want %q", name, tt.err, tt.want)
			}
		}
		locktest.WantSame(t, "scripts", sent.Hits(), 0)
	})
}
