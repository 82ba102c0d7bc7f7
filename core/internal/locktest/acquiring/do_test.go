package acquiring_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A nil function is an invalid argument: Do does not take the lock.
func TestDo_WithoutAFunctionIsInvalid(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		all := map[string]core.Lock{"multi of one": locks.MultiLock("one")}
		for _, kind := range locktest.KindsOnOneServer() {
			if kind.Lock != nil {
				all[kind.Name] = kind.On(locks, kind.Name)
			}
		}
		for name, l := range all {
			err := l.Do(t.Context(), nil)
			locktest.WantErr(t, err, core.ErrInvalid)
			if err == nil || !strings.Contains(err.Error(), "Do without a function") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		locktest.WantSame(t, "keys", b.DBSize(t.Context()).Val(), 0)
	})
}

var errHandler = errors.New("the handler's error")

func TestDo_RunsTheFunction(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		err := l.Do(t.Context(), func(ctx context.Context) error {
			b.WantCount(core.MustHold(ctx, "k"), "1")
			return errHandler
		})
		if err != errHandler { //nolint:errorlint // untouched is what is promised
			t.Errorf("got %v, want the error of the function unchanged", err)
		}
		b.WantGone("k")
	})
}

func TestDo_NotAcquired(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Minute)
		err := b.Locks().Lock("k").Do(t.Context(), func(context.Context) error {
			t.Error("the function ran")
			return nil
		}, core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
	})
}

func TestDo_PanicReleases(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		defer func() {
			locktest.WantSame(t, "recovered", recover(), "boom")
			b.WantGone("k")
		}()
		_ = b.Locks().Lock("k").Do(t.Context(), func(context.Context) error { panic("boom") })
		t.Error("Do returned, want it to pass the panic or the exit on")
	})
}

func TestDo_GoexitReleases(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = l.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
			t.Error("Do returned, want it to pass the panic or the exit on")
		}()
		<-ended
		b.WantGone("k")
	})
}

func TestDo_LossAndErrorOfTheFunction(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		lose := func(err error) error {
			return l.Do(t.Context(), func(context.Context) error {
				b.Take("k", locktest.Stranger, time.Minute)
				return err
			})
		}
		locktest.WantErr(t, lose(errHandler), errHandler, core.ErrLost)
		b.Del(t.Context(), "k")
		locktest.WantErr(t, lose(nil), core.ErrLost)
		b.Del(t.Context(), "k")
		if err := lose(core.ErrLost); err != core.ErrLost { //nolint:errorlint // the same error, not joined with itself
			t.Errorf("got %v", err)
		}
		b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
	})
}

func TestDo_FunctionEndsTheHold(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		err := l.Do(t.Context(), func(ctx context.Context) error {
			locktest.MustRelease(t, core.MustHold(ctx, "k"))
			b.WantGone("k")
			return nil
		})
		locktest.WantOK(t, err)
		var moved *core.Hold
		err = l.Do(t.Context(), func(ctx context.Context) error {
			_, moved = core.MustHold(ctx, "k").Handover()
			return nil
		})
		locktest.WantOK(t, err)
		b.WantCount(moved, "1")
		locktest.MustRelease(t, moved)
		b.WantGone("k")
	})
}
