package acquiring_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/redistest"
)

// ownHoldHint is the text of an error about a hold of the same client.
const ownHoldHint = "held by another hold of this client"

// wantOwnHold checks whether a refusal says that a hold of the same client has the lock.
func wantOwnHold(t *testing.T, what string, err error, want bool) {
	t.Helper()
	taken, ok := errors.AsType[*core.NotAcquiredError](err)
	if !ok {
		t.Errorf("%s: got %v, want a NotAcquiredError", what, err)
		return
	}
	if taken.OwnHold != want || strings.Contains(err.Error(), ownHoldHint) != want || strings.Contains(core.ErrorText(err), ownHoldHint) != want {
		t.Errorf("%s: got %v (OwnHold %t), want %t", what, err, taken.OwnHold, want)
	}
	if want && taken.BlockedBy == "" {
		t.Errorf("%s: got %v, want the field of the hold", what, err)
	}
}

// An inner Acquire without the context of the outer hold waits for its own caller. Its error says so, however the
// wait ends, for every kind.
func TestNotAcquiredError_OwnHold(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		type nested struct{ outer, inner core.Lock }
		all := map[string]nested{
			"one of several keys": {locks.Lock("several"), locks.MultiLock("free", "several")},
			"several keys":        {locks.MultiLock("a", "b"), locks.Lock("b")},
		}
		for _, kind := range locktest.KindsOnOneServer() {
			if kind.Lock != nil {
				all[kind.Name] = nested{kind.On(locks, kind.Name), kind.Rival([]*core.Client{locks}, kind.Name)}
			}
		}
		for name, tt := range all {
			_, hold := locktest.MustAcquire(t, t.Context(), tt.outer, core.LeaseTime(time.Hour))
			_, _, err := tt.inner.Acquire(context.Background(), core.WaitTime(0))
			wantOwnHold(t, name+", without a wait", err, true)
			_, _, err = tt.inner.Acquire(context.Background(), core.WaitTime(3*time.Second))
			wantOwnHold(t, name+", wait time", err, true)
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			_, _, err = tt.inner.Acquire(ctx)
			wantOwnHold(t, name+", deadline", err, true)
			locktest.WantErr(t, err, context.DeadlineExceeded)
			cancel()
			locktest.MustRelease(t, hold)
		}
	})
}

// Without the context of the outer hold, an Acquire of a Redlock also waits for its own caller.
func TestNotAcquiredError_OwnHoldOfARedlock(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		lock := core.Redlock("k", locktest.BehindEach(t, servers)...)
		_, hold := locktest.MustAcquire(t, t.Context(), lock)
		for _, wait := range []time.Duration{0, 3 * time.Second} {
			_, _, err := lock.Acquire(context.Background(), core.WaitTime(wait))
			wantOwnHold(t, wait.String(), err, true)
		}
		_, _, err := core.Redlock("k", locktest.BehindEach(t, servers)...).Acquire(t.Context(), core.WaitTime(3*time.Second))
		wantOwnHold(t, "of another process", err, false)
		locktest.MustRelease(t, hold)
	})
}

// The error does not mention a hold of this client if another client holds the lock, if the hold was left (Hold.Leave),
// or if the lock has passed to another client since.
func TestNotAcquiredError_OfAnotherHold(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, others := b.Locks(), b.Locks()
		_, theirs := locktest.MustAcquire(t, t.Context(), others.Lock("theirs"))
		_, left := locktest.MustAcquire(t, t.Context(), locks.Lock("left"))
		locktest.Must(t, left.Leave(t.Context(), time.Hour))
		_, lost := locktest.MustAcquire(t, t.Context(), locks.Lock("lost"), core.LeaseTime(time.Hour))
		b.Take("lost", locktest.Stranger, time.Hour)
		_, reading := locktest.MustAcquire(t, t.Context(), others.ReadLock("read"))
		for name, lock := range map[string]core.Lock{
			"theirs": locks.Lock("theirs"), "left": locks.Lock("left"), "lost": locks.Lock("lost"), "read": locks.WriteLock("read"),
		} {
			for _, wait := range []time.Duration{0, 3 * time.Second} {
				_, _, err := lock.Acquire(t.Context(), core.WaitTime(wait))
				wantOwnHold(t, name, err, false)
			}
		}
		locktest.WantErr(t, lost.Release(t.Context()), core.ErrNotHeld)
		locktest.MustRelease(t, theirs)
		locktest.MustRelease(t, reading)
	})
}

// Refusal returns the error with which Acquire would fail at once. It does not ask Redis.
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
				{locks.ForAdapters().Refusal(ctx), nil}, // it may re-enter
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

func TestRefusal_RedisIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.New(t)
		locks := locktest.NewClient(t, srv.Client())
		srv.Down()
		locktest.Must(t, locks.ForAdapters().Refusal(t.Context())) // no call has asked Redis yet
		_, _, err := locks.Lock("a").Acquire(t.Context())
		locktest.WantErr(t, err, core.ErrUnavailable)
		time.Sleep(time.Second) // in the time of the bubble: the caller gives up a little before the backend timeout
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
