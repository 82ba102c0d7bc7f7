package acquiring_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// The zero value of a lock, and a lock of the zero value of a client, have no Redis.
func TestZero_LocksAreInvalid(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context) error { return nil }
	locks := map[string]core.Lock{
		"Lock": {}, "Semaphore": core.Semaphore{}.Lock, "of a zero Client": new(core.Client).Lock("k"),
		"of several names": new(core.Client).MultiLock("a", "b"), "Redlock": core.Redlock("k", new(core.Client)),
	}
	for name, lock := range locks {
		for call, do := range map[string]func() error{
			"Acquire": func() error { _, _, err := lock.Acquire(t.Context()); return err },
			"Do":      func() error { return lock.Do(t.Context(), nothing) },
			"Do(nil)": func() error { return lock.Do(t.Context(), nil) },
			"Call": func() error {
				_, err := core.Call(t.Context(), lock, func(context.Context) (int, error) { return 1, nil })
				return err
			},
			"State":        func() error { _, err := lock.State(t.Context()); return err },
			"ForceRelease": func() error { _, err := lock.ForceRelease(t.Context()); return err },
		} {
			t.Run(name+"/"+call, func(t *testing.T) {
				t.Parallel()
				locktest.WantErr(t, do(), core.ErrInvalid)
			})
		}
	}
}

func TestZero_CountsAreInvalid(t *testing.T) {
	t.Parallel()
	var permits core.Semaphore
	var plain core.PlainSemaphore
	var latch core.CountDownLatch
	if permits.Held(t.Context()) {
		t.Error("a zero Semaphore is held")
	}
	for call, do := range map[string]func() error{
		"Semaphore.TrySetPermits":      func() error { _, err := permits.TrySetPermits(t.Context(), 1); return err },
		"Semaphore.Available":          func() error { _, err := permits.Available(t.Context()); return err },
		"Semaphore.ReleasePermit":      func() error { return permits.ReleasePermit(t.Context(), strings.Repeat("0", 32)) },
		"PlainSemaphore.Acquire":       func() error { return plain.Acquire(t.Context(), 1) },
		"PlainSemaphore.Release":       func() error { return plain.Release(t.Context(), 1) },
		"PlainSemaphore.TrySetPermits": func() error { _, err := plain.TrySetPermits(t.Context(), 1); return err },
		"PlainSemaphore.Drain":         func() error { _, err := plain.Drain(t.Context()); return err },
		"CountDownLatch.TrySetCount":   func() error { _, err := latch.TrySetCount(t.Context(), 1); return err },
		"CountDownLatch.CountDown":     func() error { return latch.CountDown(t.Context()) },
		"CountDownLatch.Await":         func() error { return latch.Await(t.Context()) },
		"CountDownLatch.Count":         func() error { _, err := latch.Count(t.Context()); return err },
		"CountDownLatch.Delete":        func() error { _, err := latch.Delete(t.Context()); return err },
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			locktest.WantErr(t, do(), core.ErrInvalid)
		})
	}
}

// The zero value of a Hold is like nil.
func TestZero_HoldIsNone(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]*core.Hold{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
			locktest.WantErr(t, hold.Refresh(t.Context(), time.Second), core.ErrNotHeld)
			locktest.WantErr(t, hold.Leave(t.Context(), time.Second), core.ErrNotHeld)
			if hold.Key() != "" || hold.Keys() != nil || hold.Field() != "" || hold.Token() != 0 || hold.Remaining() != 0 {
				t.Errorf("got %q %q %q %d %s", hold.Key(), hold.Keys(), hold.Field(), hold.Token(), hold.Remaining())
			}
			ctx, next := hold.Handover()
			if next != nil {
				t.Errorf("Handover: got %v", next)
			}
			locktest.WantEnded(t, ctx, core.ErrNotHeld)
		})
	}
}

// A name whose last field is empty is most likely built from a value that is missing: "order:" + "".
func TestLock_NameWithoutItsLastField(t *testing.T) {
	t.Parallel()
	locks := locktest.Embedded(t).Locks()
	for name, lock := range map[string]core.Lock{
		"Lock": locks.Lock("order:"), "MultiLock": locks.MultiLock("order:42", "order:"), "Semaphore": locks.Semaphore("order:", 1).Lock,
		"GroupLock": locks.GroupLock("order:", "42"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := lock.Acquire(t.Context(), core.WaitTime(0))
			locktest.WantErr(t, err, core.ErrInvalid)
			if err == nil || !strings.Contains(err.Error(), `"order:" ends in a colon: the value after it is missing`) {
				t.Errorf("got %v", err)
			}
		})
	}
	locktest.Must(t, locks.GroupLock("order", "42:").Do(t.Context(), func(context.Context) error { return nil }))
}

// The test is not parallel because it replaces the default logger.
func TestNew_WarnsOfAPrefixWithoutASeparator(t *testing.T) { //nolint:paralleltest // see above
	log := locktest.RecordDefaultLog(t)
	b := locktest.Embedded(t)
	b.Locks(core.WithPrefix("shop:"))
	b.Locks(core.WithPrefix("shop-"))
	b.Locks()
	if lines := log.Take(); len(lines) > 0 {
		t.Errorf("logged %q", lines)
	}
	b.Locks(core.WithPrefix("shop"))
	log.WantLine(t, `level=WARN msg="prefix of locks ends without a separator" prefix=shop`, "shoporder:42", "shop:")
}

// Without a right to the channel waiters poll, and one line says so. The test is not parallel because it replaces the
// default logger.
func TestAcquire_WarnsOfPolling(t *testing.T) { //nolint:paralleltest // see above
	log := locktest.RecordDefaultLog(t)
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		proxy.AnswerError(faultproxy.Command("subscribe"), "NOPERM this user has no permissions to access one of the channels used as arguments")
		other := b.Locks()
		for range 3 {
			_, hold := locktest.MustAcquire(t, t.Context(), other.Lock("order:secret"))
			at := locktest.GoAcquire(t.Context(), locks.Lock("order:secret"), core.WaitTime(time.Minute))
			locktest.Pass(10 * time.Second)
			locktest.MustRelease(t, hold)
			locktest.MustRelease(t, locktest.Got(t, at).Hold)
		}
	})
	log.WantLine(t, `level=WARN msg="redis refuses the messages of locks: waiters ask once a second instead"`, "NOPERM", "+subscribe", "interlock doctor")
}
