package kinds_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

func notANumber(b *locktest.Redis) { b.Set(context.Background(), "pool", "many", 0) }

// If the key does not contain a number, an operation returns an error that says so.
func TestCounts_NotANumber(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(locktest.Patient)
		notANumber(b)
		for name, ask := range map[string]func() error{
			"permit": func() error {
				_, _, err := locks.Semaphore("pool", 2).Acquire(t.Context(), core.WaitTime(0))
				return err
			},
			"permit of others": func() error {
				_, _, err := locks.Semaphore("pool", 0).Acquire(t.Context(), core.WaitTime(0))
				return err
			},
			"plain": func() error { return locks.PlainSemaphore("pool").Acquire(t.Context(), 1, core.WaitTime(0)) },
			"latch": func() error { return locks.CountDownLatch("pool").Await(t.Context(), core.WaitTime(0)) },
			"count": func() error {
				_, err := locks.PlainSemaphore("pool").Available(t.Context())
				return err
			},
		} {
			err := ask()
			locktest.WantErr(t, err, core.ErrUnavailable)
			if err != nil && !strings.Contains(err.Error(), "not an integer") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		b.WantGone("{pool}:interlock_ops", locktest.PermitLeases)
	})
}

// Every method refuses a number that Redisson cannot represent, and sends no command.
func TestCounts_OutOfRangeSendsNothing(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		pool, plain := locks.Semaphore("pool", 0), locks.PlainSemaphore("pool")
		methods := map[string]func(n int) error{
			"Release":     func(n int) error { return plain.Release(t.Context(), n) },
			"Acquire":     func(n int) error { return plain.Acquire(t.Context(), n) },
			"add":         func(n int) error { return plain.AddPermits(t.Context(), n) },
			"add permits": func(n int) error { return pool.AddPermits(t.Context(), n) },
			"SetPermits":  func(n int) error { return pool.SetPermits(t.Context(), n) },
			"TrySetPermits": func(n int) error {
				_, err := pool.TrySetPermits(t.Context(), n)
				return err
			},
			"TrySetCount": func(n int) error {
				_, err := locks.CountDownLatch("pool").TrySetCount(t.Context(), n)
				return err
			},
			"Semaphore": func(n int) error {
				_, _, err := locks.Semaphore("pool", n).Acquire(t.Context(), core.WaitTime(0))
				return err
			},
		}
		for name, method := range methods {
			for _, n := range []int{math.MaxInt, math.MinInt, math.MaxInt32 + 1, math.MinInt32 - 1} {
				if err := method(n); err == nil {
					t.Errorf("%s(%d): got nil, want an error", name, n)
				} else {
					locktest.WantErr(t, err, core.ErrInvalid)
				}
			}
		}
		locktest.WantSame(t, "scripts", sent.Hits(), 0)
	})
}

// Every acquisition sets the number of permits that was passed to Semaphore, so another number would not last. Methods
// that set a number return an error and send no command.
func TestPermitSemaphore_NumberSetTwice(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		pool := locks.Semaphore("pool", 3)
		for name, method := range map[string]func() error{
			"TrySetPermits": func() error { _, err := pool.TrySetPermits(t.Context(), 5); return err },
			"SetPermits":    func() error { return pool.SetPermits(t.Context(), 5) },
			"AddPermits":    func() error { return pool.AddPermits(t.Context(), 5) },
		} {
			err := method()
			locktest.WantErr(t, err, core.ErrInvalid)
			want := name + `(5): each acquisition of Semaphore("pool", 3) sets it to 3 again: to set the number by hand, want Semaphore("pool", 0) wherever it is used`
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		locktest.WantSame(t, "scripts", sent.Hits(), 0)
	})
}

// A change whose result Redisson cannot represent is refused, even if the first reply is lost. The count stays as it
// was, no message is sent, and nothing is recorded.
func TestCounts_BeyondRangeChangesNothing(t *testing.T) {
	t.Parallel()
	plain := func(n int) func(context.Context, *core.Client) error {
		return func(ctx context.Context, locks *core.Client) error {
			return locks.PlainSemaphore("pool").AddPermits(ctx, n)
		}
	}
	leased := func(n int) func(context.Context, *core.Client) error {
		return func(ctx context.Context, locks *core.Client) error {
			return locks.Semaphore("pool", 0).AddPermits(ctx, n)
		}
	}
	for name, tt := range map[string]struct {
		change func(context.Context, *core.Client) error
		count  string
		fits   string // "": the change is refused
	}{
		"release": {func(ctx context.Context, locks *core.Client) error {
			return locks.PlainSemaphore("pool").Release(ctx, 2)
		}, "2147483646", ""},
		"add":                 {plain(math.MaxInt32), "1", ""},
		"add all":             {plain(math.MaxInt32), "0", "2147483647"},
		"take away":           {plain(-1), "-2147483648", ""},
		"take away all":       {plain(-math.MaxInt32), "-1", "-2147483648"},
		"add permits":         {leased(1), "2147483646", ""}, // one permit is taken
		"add all permits":     {leased(1), "2147483645", "2147483646"},
		"take permits away":   {leased(-2), "-2147483647", ""},
		"beside a large one":  {plain(1), "9007199254740993", ""},
		"beside the largest":  {plain(1), "9223372036854775807", ""},
		"permits beside it":   {leased(1), "9223372036854775807", ""},
		"beside the smallest": {plain(-1), "-9223372036854775808", ""},
	} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, bed *locktest.Redis) {
			b := locktest.PermitsOf(bed)
			proxy, rdb := faultproxy.Around(t, b.Client)
			locks := locktest.NewClient(t, rdb, locktest.Patient)
			warmScript(t, b, "plain_semaphore/clear")
			warmScript(t, b, "semaphore/clear")
			b.Set(t.Context(), "pool", 1, 0)
			b.RedissonAcquire([]byte("0123456789abcdef"), locktest.PermitForEver)
			b.Set(t.Context(), "pool", tt.count, 0)
			sub := b.SubscribeTo(t, locktest.PermitChannel)
			rule := proxy.DropReply(faultproxy.Once(locktest.Scripts))
			err, want := tt.change(t.Context(), locks), tt.fits
			if want == "" {
				want = tt.count
				locktest.WantOnly(t, err, core.ErrInvalid, core.ErrUnavailable)
				locktest.Must(t, b.Publish(t.Context(), locktest.PermitChannel, "end").Err())
				sub.Want("end")
				b.WantGone("{pool}:interlock_ops")
			} else {
				locktest.Must(t, err)
			}
			if got := b.Get(t.Context(), "pool").Val(); got != want || rule.Hits() != 1 {
				t.Errorf("%s permits after %d lost replies, want %s", got, rule.Hits(), want)
			}
		})
	}
}

// A semaphore whose number was never set has no permits. The error of a waiter says so, however the wait ends. If all
// permits are taken, the error does not say so.
func TestPermitSemaphore_NumberNeverSet(t *testing.T) {
	t.Parallel()
	const want = "it has no permits: set their number by TrySetPermits, SetPermits or from Java, or give Semaphore one"
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		pool := locks.Semaphore("pool", 0)
		attempt := func(limit time.Duration, opts ...core.AcquireOption) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, _, err := pool.Acquire(ctx, opts...)
			locktest.WantErr(t, err, core.ErrNotAcquired)
			return err
		}
		for name, err := range map[string]error{
			"one attempt": attempt(time.Hour, core.WaitTime(0)),
			"wait time":   attempt(time.Hour, core.WaitTime(5*time.Second)),
			"deadline":    attempt(5 * time.Second),
		} {
			if !strings.Contains(err.Error(), want) || !strings.Contains(core.ErrorText(err), want) {
				t.Errorf("%s: got %v, logged as %s, want %q", name, err, core.ErrorText(err), want)
			}
			if got := errors.Is(err, context.DeadlineExceeded); got != (name == "deadline") {
				t.Errorf("%s: matches DeadlineExceeded: %t", name, got)
			}
		}
		locktest.Must(t, pool.SetPermits(t.Context(), 1))
		_, hold := locktest.MustAcquire(t, t.Context(), pool.Lock)
		if err := attempt(time.Hour, core.WaitTime(0)); strings.Contains(err.Error(), "no permits") {
			t.Errorf("the error of a taken permit says that there are no permits: %v", err)
		}
		locktest.MustRelease(t, hold)
	})
}
