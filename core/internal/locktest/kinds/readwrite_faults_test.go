package kinds_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// The abandoned attempt of a reader lands late, beside other readers or before a writer. The client clears it up and
// frees no other holder.
func TestReadWriteFault_GhostReader(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	locks, other := r.Behind(locktest.Patient), r.Beside()
	b := &locktest.Redis{T: t, Client: r.Client}
	ghost := r.Proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "read/acquire", "k")))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err := locks.ReadLock("k").Acquire(ctx, core.LeaseTime(time.Minute))
	locktest.WantErr(t, err, context.DeadlineExceeded)
	<-ghost.Hit()
	living, hold := locktest.MustAcquire(t, t.Context(), other.ReadLock("k"))
	locktest.Land(r.T, ghost)
	b.WantReaders("k", map[string]int{hold.Field(): 1})
	locktest.WantAlive(t, living)
	start := time.Now()
	writing := locktest.GoAcquire(t.Context(), other.WriteLock("k"))
	locktest.AwaitWaiters(t, other, 1)
	locktest.MustRelease(t, hold)
	w := locktest.Got(t, writing)
	locktest.WantAtMost(t, "the writer", time.Since(start), time.Second)
	locktest.MustRelease(t, w.Hold)
	locktest.WithinASecond(t, "nothing left", func() bool { return len(r.Client.Keys(t.Context(), "*").Val()) == 0 })
}

// The abandoned attempt of a writer lands late, when the lock is free or another caller has it. So does the abandoned
// attempt of a writer to read.
func TestReadWriteFault_GhostWriter(t *testing.T) {
	t.Parallel()
	for _, inside := range []bool{false, true} {
		r := locktest.NewProxied(t)
		locks := r.Behind(locktest.Patient)
		base, lock, name := t.Context(), locks.WriteLock("k"), "write/acquire"
		var outer *core.Hold
		if inside {
			base, outer = locktest.MustAcquire(t, t.Context(), lock)
			lock, name = locks.ReadLock("k"), "read/acquire"
		}
		ghost := r.Proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, name, "k")))
		ctx, cancel := context.WithTimeout(base, 30*time.Millisecond)
		_, _, err := lock.Acquire(ctx, core.LeaseTime(time.Minute))
		cancel()
		locktest.WantErr(t, err, context.DeadlineExceeded)
		<-ghost.Hit()
		locktest.Land(r.T, ghost)
		if inside {
			r.WantReaders("k", map[string]int{outer.Field(): 1})
			locktest.MustRelease(t, outer)
		}
		locktest.WithinASecond(t, "nothing left", func() bool { return len(r.Client.Keys(t.Context(), "*").Val()) == 0 })
	}
}

// A release, a re-entry and a renewal that land after the end of the hold bring nothing back.
func TestReadWriteFault_LateLanding(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"read/sethold", "read/renew", "read/refresh", "read/release"} {
		locktest.Parallel(t, name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			locks := r.Behind(core.WithWatchdog(6*time.Second), locktest.Patient) // a slow machine renews long before the end of the lease
			b := &locktest.Redis{T: t, Client: r.Client}
			lock := locks.ReadLock("k")
			late := r.Proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, name, "k")))
			ctx, hold := locktest.MustAcquire(t, t.Context(), lock)
			go func() {
				switch name {
				case "read/sethold":
					_, _, _ = lock.Acquire(ctx)
				case "read/refresh":
					_ = hold.Refresh(ctx, time.Hour)
				case "read/release":
					_ = hold.Release(ctx)
				}
			}()
			<-late.Hit()
			b.Del(t.Context(), "k", locktest.ReaderTimeoutOf("k", hold.Field(), "1"))
			_, other := locktest.MustAcquire(t, t.Context(), r.Beside().ReadLock("k"))
			locktest.Land(r.T, late)
			b.WantReaders("k", map[string]int{other.Field(): 1})
			locktest.MustRelease(t, other)
			locktest.AwaitEnd(t, ctx)
			locktest.WithinASecond(t, "nothing left", func() bool { return len(r.Client.Keys(t.Context(), "*").Val()) == 0 })
		})
	}
}
