package holding_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// The tests in this file replace the default logger. So they are not parallel.

// A handler works for longer than its lease, and another client runs beside it.
func TestUnobserved_LeaseShorterThanTheWork(t *testing.T) { //nolint:paralleltest // see above
	log := locktest.RecordDefaultLog(t)
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		one, other := b.Locks(), b.Locks()
		err := one.Lock("order:secret").Do(t.Context(), func(ctx context.Context) error {
			locktest.Pass(3 * time.Second)
			return other.Lock("order:secret").Do(context.WithoutCancel(ctx), func(context.Context) error { return nil })
		}, core.LeaseTime(2*time.Second), core.Label("pay"))
		locktest.WantErr(t, err, core.ErrLost)
	})
	log.WantLine(t, `level=ERROR msg="lock lost under its holder" rule=pay kind=reentrant key_hash=`+core.KeyHash("order:secret"),
		`error="core: lock lost: the lease has expired"`, "holder=", "held=", `hint="the work took longer than its lease of 2s`)
}

// A program was killed with a lock. Other programs are refused until its lease ends.
func TestUnobserved_KeyOfAKilledProgram(t *testing.T) { //nolint:paralleltest // see above
	log := locktest.RecordDefaultLog(t)
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("order:secret", locktest.Stranger, 28*time.Second)
		lock := b.Locks().Lock("order:secret")
		for range 27 {
			_, _, err := lock.Acquire(t.Context(), core.WaitTime(0), core.Label("pay"))
			locktest.WantErr(t, err, core.ErrNotAcquired)
			locktest.Pass(time.Second)
		}
		lines := log.Lines()
		if len(lines) != 3 {
			t.Fatalf("%d lines in 27 seconds, want 3:\n%s", len(lines), strings.Join(lines, "\n"))
		}
		if !strings.Contains(lines[2], "suppressed=9") {
			t.Errorf("the last line does not count the others: %s", lines[2])
		}
		locktest.Pass(2 * time.Second)
		locktest.Must(t, lock.Do(t.Context(), func(context.Context) error { return nil }))
	})
	for _, word := range []string{
		`level=INFO msg="lock busy: another process holds it, or has died with it" rule=pay kind=reentrant key_hash=` + core.KeyHash("order:secret"),
		"holder=" + locktest.Stranger, "waited=", "lease_left=28s", "interlock who",
	} {
		if line := log.Lines()[0]; !strings.Contains(line, word) {
			t.Errorf("the line lacks %s: %s", word, line)
		}
	}
	if text := strings.Join(log.Lines(), "\n"); strings.Contains(text, "secret") {
		t.Errorf("a line names the key: %s", text)
	}
}

// What this process does by itself is not logged: a refusal by another hold of the client, the release, a wait that ends
// with the lock.
func TestUnobserved_NothingToHear(t *testing.T) { //nolint:paralleltest // see above
	log := locktest.RecordDefaultLog(t)
	locktest.EachKind(t, func(t *testing.T, w *locktest.World) {
		_, hold := locktest.MustAcquire(t, t.Context(), w.Mine)
		_, again, err := w.Mine.Acquire(t.Context(), core.WaitTime(0))
		if err == nil { // a reader or a permit beside it
			locktest.MustRelease(t, again)
		}
		at := locktest.GoAcquire(t.Context(), w.Other, core.WaitTime(time.Minute))
		locktest.Pass(time.Second)
		locktest.MustRelease(t, hold)
		if o := locktest.Got(t, at); o.Err == nil {
			locktest.MustRelease(t, o.Hold)
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
	})
	t.Cleanup(func() { // after the parallel kinds
		if lines := log.Lines(); len(lines) > 0 {
			t.Errorf("logged %s", strings.Join(lines, "\n"))
		}
	})
}

// Each event without an observer is logged, and with one it is not.
func TestUnobserved_Events(t *testing.T) { //nolint:paralleltest // see above
	log := locktest.RecordDefaultLog(t)
	for _, test := range []struct {
		name  string
		event func(t *testing.T, b *locktest.Redis, locks *core.Client, proxy *faultproxy.Proxy)
		want  []string
	}{
		{"a lock that was forced away", func(t *testing.T, b *locktest.Redis, locks *core.Client, _ *faultproxy.Proxy) {
			t.Helper()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.Label("pay"))
			b.Del(t.Context(), "k")
			<-ctx.Done()
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		}, []string{`level=ERROR msg="lock lost under its holder" rule=pay`, "redis has another holder, or none", `hint="the key was deleted`}},
		{"a hold beyond its MaxHold", func(t *testing.T, _ *locktest.Redis, locks *core.Client, _ *faultproxy.Proxy) {
			t.Helper()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.MaxHold(time.Second))
			<-ctx.Done()
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrHeldTooLong)
		}, []string{`level=WARN msg="lock held too long: it is not renewed any more" kind=reentrant`, "hint="}},
		{"a hold that Close leaves", func(t *testing.T, _ *locktest.Redis, locks *core.Client, _ *faultproxy.Proxy) {
			t.Helper()
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			locktest.WantErr(t, locks.Close(ctx), core.ErrClosed)
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrClosed)
		}, []string{`level=WARN msg="lock left to its lease: the client was closed under its holder"`, "hint="}},
		{"a release that Redis refuses", func(t *testing.T, _ *locktest.Redis, locks *core.Client, proxy *faultproxy.Proxy) {
			t.Helper()
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			rule := proxy.AnswerError(locktest.Scripts, "NOPERM no permissions")
			defer rule.Remove()
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrUnavailable)
		}, []string{`level=WARN msg="lock release failed"`, "NOPERM", "hint="}},
	} {
		t.Run(test.name, func(t *testing.T) {
			locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
				locks, proxy := b.BehindAProxy(core.WithObserver((&locktest.Recorder{}).Observer()))
				test.event(t, b, locks, proxy)
				synctest.Wait()
				if lines := log.Take(); len(lines) > 0 {
					t.Errorf("with an observer: logged %q", lines)
				}
				b.FlushAll(t.Context())
				locks, proxy = b.BehindAProxy(core.WithObserver(&core.Observer{Renewal: func(context.Context, core.Renewal) {}}))
				test.event(t, b, locks, proxy)
				synctest.Wait()
				log.WantLine(t, test.want...)
				b.FlushAll(t.Context())
				locks, proxy = b.BehindAProxy()
				test.event(t, b, locks, proxy)
				synctest.Wait()
				log.WantLine(t, test.want...)
			})
		})
	}
}

// A hold that no caller refers to any more is never released.
func TestUnobserved_Leak(t *testing.T) { //nolint:paralleltest // see above
	log := locktest.RecordDefaultLog(t)
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(core.WithWatchdog(3*time.Second), locktest.Patient)
		func() { locktest.MustAcquire(t, t.Context(), locks.Lock("leaked"), core.Label(t.Name())) }()
		locktest.EventuallyCollected(t, "a line about the leak", func() bool {
			text := strings.Join(log.Lines(), "\n")
			return strings.Contains(text, `level=ERROR msg="lock never released: its Hold was garbage-collected" rule=`+t.Name())
		})
	})
}

// Many losses at once leave few lines, which count the others.
func TestUnobserved_IsLimited(t *testing.T) { //nolint:paralleltest // see above
	log := locktest.RecordDefaultLog(t)
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		lose := func(n int) {
			for i := range n {
				locktest.MustAcquire(t, t.Context(), locks.Lock(fmt.Sprint("k", i)), core.LeaseTime(time.Second))
			}
			locktest.Pass(2 * time.Second)
		}
		lose(30)
		if n := len(log.Lines()); n != 10 {
			t.Errorf("%d lines about 30 losses, want 10", n)
		}
		locktest.Pass(10 * time.Second)
		log.Take()
		lose(1)
		log.WantLine(t, "suppressed=20")
	})
}

// A logger that stands still, because its pipe is full, or that panics, takes no lock from a holder.
func TestUnobserved_BrokenLogger(t *testing.T) { //nolint:paralleltest // see above
	for name, handle := range map[string]func(stop <-chan struct{}){
		"stands still": func(stop <-chan struct{}) { <-stop },
		"panics":       func(<-chan struct{}) { panic("a handler of the application") },
	} {
		t.Run(name, func(t *testing.T) {
			log := locktest.RecordDefaultLog(t)
			locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
				stop := make(chan struct{})
				defer func() { close(stop); locktest.Pass(time.Second) }()
				log.Break(func() { handle(stop) })
				locks := b.Locks()
				for _, name := range []string{"expires", "too"} {
					locktest.MustAcquire(t, t.Context(), locks.Lock(name), core.LeaseTime(time.Second))
				}
				ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("kept"))
				locktest.Pass(10 * time.Minute)
				locktest.Must(t, context.Cause(ctx))
				locktest.MustRelease(t, hold)
			})
		})
	}
}
