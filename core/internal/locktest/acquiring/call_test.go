package acquiring_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// seven is a function for Call.
func seven(context.Context) (int, error) { return 7, nil }

// wantValue checks the value that Call returned.
func wantValue(t *testing.T, got, want int) {
	t.Helper()
	locktest.WantSame(t, "value", got, want)
}

func TestCall_Value(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		all := map[string]core.Lock{"redlock": core.Redlock("redlock", locks)}
		for _, kind := range locktest.KindsOnOneServer() {
			if kind.Lock != nil {
				all[kind.Name] = kind.On(locks, kind.Name)
			}
		}
		for name, l := range all {
			value, err := core.Call(t.Context(), l, func(ctx context.Context) (int, error) {
				locktest.WantSame(t, name+": locks of the context", len(core.HoldsOf(ctx)), 1)
				return seven(ctx)
			})
			locktest.WantOK(t, err)
			wantValue(t, value, 7)
			locktest.WantSame(t, name+": holds of the client", locks.Stats().Holds, 0)
		}
	})
}

func TestCall_NotAcquired(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Minute)
		value, err := core.Call(t.Context(), b.Locks().Lock("k"), func(ctx context.Context) (int, error) {
			t.Error("the function ran")
			return seven(ctx)
		}, core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		wantValue(t, value, 0)
	})
}

// The error of an invalid call names Call. Call runs nothing and takes no lock.
func TestCall_Invalid(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		for name, test := range map[string]struct {
			lock core.Lock
			fn   func(context.Context) (int, error)
			want string
		}{
			"nil function":            {lock: locks.Lock("k"), want: "Call without a function"},
			"nil function of Redlock": {lock: core.Redlock("k", locks), want: "Call without a function"},
			"bad name":                {lock: locks.Lock(""), fn: seven, want: "empty lock name"},
			"bad name, nil function":  {lock: locks.Lock(""), want: "empty lock name"},
		} {
			value, err := core.Call(t.Context(), test.lock, test.fn)
			locktest.WantErr(t, err, core.ErrInvalid)
			wantValue(t, value, 0)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %q", name, err, test.want)
			}
		}
		locktest.WantSame(t, "keys", b.DBSize(t.Context()).Val(), 0)
	})
}

// Call returns the value of the function beside each error.
func TestCall_ErrorKeepsTheValue(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		value, err := core.Call(t.Context(), l, func(context.Context) (int, error) { return 7, errHandler })
		if err != errHandler { //nolint:errorlint // untouched is what is promised
			t.Errorf("got %v, want the error of the function unchanged", err)
		}
		wantValue(t, value, 7)
		b.WantGone("k")

		value, err = core.Call(t.Context(), l, func(context.Context) (int, error) {
			b.Take("k", locktest.Stranger, time.Minute)
			return 7, errHandler
		})
		locktest.WantErr(t, err, errHandler, core.ErrLost)
		wantValue(t, value, 7)
		b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
	})
}

func TestCall_FailedReleaseKeepsTheValue(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		value, err := core.Call(t.Context(), locks.Lock("k"), func(ctx context.Context) (int, error) {
			proxy.HoldRequest(locktest.Scripts)
			return seven(ctx)
		})
		locktest.WantErr(t, err, core.ErrUnavailable)
		wantValue(t, value, 7)
	})
}

func TestCall_PanicReleases(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		defer func() {
			locktest.WantSame(t, "recovered", recover(), "boom")
			b.WantGone("k")
		}()
		_, _ = core.Call(t.Context(), b.Locks().Lock("k"), func(context.Context) (int, error) { panic("boom") })
		t.Error("Call returned, want it to pass the panic on")
	})
}

func TestCall_GoexitReleases(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = core.Call(t.Context(), l, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
			t.Error("Call returned, want it to pass the exit on")
		}()
		<-ended
		b.WantGone("k")
	})
}
