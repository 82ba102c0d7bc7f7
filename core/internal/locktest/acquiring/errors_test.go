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

// If errors of this package wrap each other, each line of their text has the prefix of the package only once. So has
// each line of the text for logs.
func TestErrors_NameThePackageOnce(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		b.Take("taken", locktest.Stranger, time.Hour)
		_, _, short := locks.Lock("taken").Acquire(t.Context(), core.WaitTime(0))
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(core.ErrLost)
		_, _, never := locks.MultiLock("a", "b").Acquire(ended)
		_, _, asked := core.Redlock("r", locks).Acquire(ended)
		released1, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("outer"))
		locktest.MustRelease(t, hold)
		_, _, after := locks.Lock("inner").Acquire(released1)
		held, outer := locktest.MustAcquire(t, t.Context(), locks.Lock("gone"))
		waits := locktest.GoAcquire(held, locks.Lock("taken"))
		locktest.AwaitWaiters(t, locks, 1)
		b.Take("gone", locktest.Stranger, time.Hour)
		waited := (<-waits).Err
		_, kept := locktest.MustAcquire(t, t.Context(), locks.Lock("kept"))
		closed := locks.Close(ended)
		for what, err := range map[string]error{
			"taken": short, "ended context": never, "redlock": asked, "released context": after,
			"lost while it waits": waited, "release of a lost one": outer.Release(t.Context()),
			"close": closed, "release after it": kept.Release(t.Context()),
		} {
			for _, text := range []string{err.Error(), core.ErrorText(err)} {
				if strings.Count(text, "core: ") != 1 || !strings.HasPrefix(text, "core: ") || strings.Contains(text, "\n") {
					t.Errorf("%s: %s", what, text)
				}
			}
		}
	})
}

// situation is a lock client that holds a MultiLock of "a" and "b", and the lock "k".
type situation struct {
	*locktest.Redis

	locks *core.Client
	proxy *faultproxy.Proxy
	hold  *core.Hold // on "k"
	multi *core.Hold
}

func newSituation(t *testing.T, b *locktest.Redis) *situation {
	t.Helper()
	s := &situation{Redis: b}
	s.locks, s.proxy = b.BehindAProxy(core.WithMaxWaitersPerKey(1))
	_, s.hold = locktest.MustAcquire(t, t.Context(), s.locks.Lock("k"), core.LeaseTime(10*time.Second))
	_, s.multi = locktest.MustAcquire(t, t.Context(), s.locks.MultiLock("a", "b"), core.LeaseTime(10*time.Second))
	return s
}

// mute keeps Redis from answering commands about a key.
func (s *situation) mute(key string) {
	s.proxy.HoldReply(faultproxy.All(faultproxy.Command("evalsha"), faultproxy.Containing(key)))
}

func (s *situation) close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.locks.Close(ctx)
}

// ending is an operation in a situation, and its outcome.
type ending struct {
	before func(s *situation)
	do     func(ctx context.Context, s *situation) error
	want   error
}

func stateOfK(ctx context.Context, s *situation) error {
	_, err := s.locks.Lock("k").State(ctx)
	return err
}

func forceK(ctx context.Context, s *situation) error {
	_, err := s.locks.Lock("k").ForceRelease(ctx)
	return err
}

// The errors of questions about a lock or a client match one outcome. So do the errors of operations on a hold that was
// handed over.
func TestErrors_OfQuestionsMatchOneOutcome(t *testing.T) {
	t.Parallel()
	text := func(s *situation) {
		s.Del(context.Background(), "k")
		s.Set(context.Background(), "k", "text", 0)
	}
	silent := func(s *situation) { s.mute("k") }
	handedOver := func(s *situation) {
		_, next := s.hold.Handover()
		s.T.Cleanup(func() { _ = next.Release(context.Background()) })
	}
	wantOutcomes(t, map[string]ending{
		"state, no answer":     {silent, stateOfK, core.ErrUnavailable},
		"state, another type":  {text, stateOfK, core.ErrUnavailable},
		"state, closed":        {(*situation).close, stateOfK, core.ErrClosed},
		"force, no answer":     {silent, forceK, core.ErrUnavailable},
		"force, another type":  {text, forceK, core.ErrUnavailable},
		"force, closed":        {(*situation).close, forceK, core.ErrClosed},
		"ready, closed":        {(*situation).close, func(ctx context.Context, s *situation) error { return s.locks.Ready(ctx) }, core.ErrClosed},
		"close, twice":         {(*situation).close, func(ctx context.Context, s *situation) error { return s.locks.Close(ctx) }, core.ErrClosed},
		"release, handed over": {handedOver, func(ctx context.Context, s *situation) error { return s.hold.Release(ctx) }, core.ErrNotHeld},
		"refresh, handed over": {handedOver, func(ctx context.Context, s *situation) error { return s.hold.Refresh(ctx, time.Minute) }, core.ErrNotHeld},
		"leave, handed over":   {handedOver, func(ctx context.Context, s *situation) error { return s.hold.Leave(ctx, time.Minute) }, core.ErrNotHeld},
		"release of nothing":   {nil, func(ctx context.Context, _ *situation) error { return (*core.Hold)(nil).Release(ctx) }, core.ErrNotHeld},
		"state of several": {nil, func(ctx context.Context, s *situation) error {
			_, err := s.locks.MultiLock("a", "b").State(ctx)
			return err
		}, core.ErrInvalid},
		"force of several": {nil, func(ctx context.Context, s *situation) error {
			_, err := s.locks.MultiLock("a", "b").ForceRelease(ctx)
			return err
		}, core.ErrInvalid},
		"acquire, at a deadline": {nil, func(ctx context.Context, s *situation) error { return s.acquire(ctx, time.Second) }, core.ErrNotAcquired},
		"acquire, too many":      {func(s *situation) { s.wait() }, func(ctx context.Context, s *situation) error { return s.acquire(ctx, time.Second) }, core.ErrTooManyWaiters},
	})
}

// acquire attempts to take "k" without the context of its hold, until a deadline.
func (s *situation) acquire(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_, _, err := s.locks.Lock("k").Acquire(ctx)
	return err
}

// wait starts another caller that waits for "k".
func (s *situation) wait() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.acquire(context.Background(), 5*time.Second)
	}()
	s.T.Cleanup(func() { <-done })
	locktest.AwaitWaiters(s.T, s.locks, 1)
}

// The operations on the keys of a MultiLock may end differently. The error matches one outcome. If a key was lost, the
// outcome is ErrLost.
func TestErrors_OfAMultiLockMatchOneOutcome(t *testing.T) {
	t.Parallel()
	lost := func(s *situation) { s.Take("a", locktest.Stranger, time.Minute) }
	both := func(s *situation) { lost(s); s.mute("b") }
	known := func(s *situation) { // otherwise the answer about "a" may come after the answer about "b"
		lost(s)
		locktest.WantErr(s.T, s.multi.Refresh(context.Background(), time.Minute), core.ErrLost)
		s.mute("b")
	}
	release := func(ctx context.Context, s *situation) error { return s.multi.Release(ctx) }
	refresh := func(ctx context.Context, s *situation) error { return s.multi.Refresh(ctx, time.Minute) }
	leave := func(ctx context.Context, s *situation) error { return s.multi.Leave(ctx, time.Minute) }
	wantOutcomes(t, map[string]ending{
		"release, one lost":                {lost, release, core.ErrLost},
		"refresh, one lost":                {lost, refresh, core.ErrLost},
		"leave, one lost":                  {lost, leave, core.ErrLost},
		"release, one lost, one no answer": {known, release, core.ErrLost},
		"refresh, one lost, one no answer": {both, refresh, core.ErrLost},
		"leave, one lost, one no answer":   {known, leave, core.ErrLost},
		"release, one no answer":           {func(s *situation) { s.mute("b") }, release, core.ErrUnavailable},
		"release, closed":                  {(*situation).close, release, core.ErrClosed},
	})
}

func wantOutcomes(t *testing.T, table map[string]ending) {
	t.Helper()
	for name, tt := range table {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			s := newSituation(t, b)
			if tt.before != nil {
				tt.before(s)
			}
			locktest.WantOutcome(t, name, tt.do(t.Context(), s), tt.want)
		})
	}
}

// The error of every operation on a lock matches one outcome.
func TestErrors_MatchOneOutcome(t *testing.T) {
	t.Parallel()
	type scene struct {
		*locktest.Redis

		locks *core.Client
		proxy *faultproxy.Proxy
		ctx   context.Context //nolint:containedctx // of the hold
		hold  *core.Hold      // on "k", with a lease of ten seconds
	}
	acquire := func(ctx context.Context, l core.Lock, opts ...core.AcquireOption) error {
		_, _, err := l.Acquire(ctx, opts...)
		return err
	}
	cancelled := func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx
	}
	lose := func(s *scene) { s.Take("k", locktest.Stranger, time.Minute) }
	known := func(s *scene) { // the loss is known to the holder
		lose(s)
		_ = s.hold.Refresh(context.Background(), time.Minute)
	}
	for name, tt := range map[string]struct {
		before func(s *scene)
		do     func(ctx context.Context, s *scene) error
		want   error
	}{
		"taken": {lose, func(ctx context.Context, s *scene) error { return acquire(ctx, s.locks.Lock("k"), core.WaitTime(0)) }, core.ErrNotAcquired},
		"taken for the wait": {lose, func(ctx context.Context, s *scene) error {
			return acquire(ctx, s.locks.Lock("k"), core.WaitTime(time.Second))
		}, core.ErrNotAcquired},
		"taken, of several": {lose, func(ctx context.Context, s *scene) error {
			return acquire(ctx, s.locks.MultiLock("a", "k"), core.WaitTime(time.Second))
		}, core.ErrNotAcquired},
		"cancelled":                      {nil, func(ctx context.Context, s *scene) error { return acquire(cancelled(ctx), s.locks.Lock("other")) }, core.ErrNotAcquired},
		"re-entry, lost":                 {lose, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.Lock("k")) }, core.ErrLost},
		"re-entry, known to be lost":     {known, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.Lock("k")) }, core.ErrLost},
		"re-entry, with a child":         {known, func(ctx context.Context, s *scene) error { return acquire(cancelled(s.ctx), s.locks.Lock("k")) }, core.ErrLost},
		"re-entry of several, lost":      {lose, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.MultiLock("a", "k")) }, core.ErrLost},
		"another lock under a lost hold": {known, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.Lock("other")) }, core.ErrNotAcquired},
		"re-entry, lease expired":        {func(*scene) { locktest.Pass(11 * time.Second) }, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.Lock("k")) }, core.ErrLost},
		"re-entry of a lost lock": {func(s *scene) {
			locktest.Pass(9500 * time.Millisecond)
			s.proxy.HoldReply(faultproxy.Command("evalsha"))
		}, func(ctx context.Context, s *scene) error {
			return acquire(s.ctx, s.locks.Lock("k"))
		}, core.ErrLost},
		"re-entry, no answer": {func(s *scene) { s.proxy.HoldReply(faultproxy.Command("evalsha")) }, func(ctx context.Context, s *scene) error {
			return acquire(s.ctx, s.locks.Lock("k"), core.WaitTime(time.Second))
		}, core.ErrUnavailable},
		"re-entry, released":        {func(s *scene) { _ = s.hold.Release(context.Background()) }, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.Lock("k")) }, core.ErrNotAcquired},
		"no answer":                 {func(s *scene) { s.proxy.HoldReply(faultproxy.Command("evalsha")) }, func(ctx context.Context, s *scene) error { return acquire(ctx, s.locks.Lock("other")) }, core.ErrUnavailable},
		"another type":              {func(s *scene) { s.Set(context.Background(), "other", 1, 0) }, func(ctx context.Context, s *scene) error { return acquire(ctx, s.locks.Lock("other")) }, core.ErrUnavailable},
		"no name":                   {nil, func(ctx context.Context, s *scene) error { return acquire(ctx, s.locks.Lock("")) }, core.ErrInvalid},
		"release, lost":             {lose, func(ctx context.Context, s *scene) error { return s.hold.Release(ctx) }, core.ErrLost},
		"release, known to be lost": {known, func(ctx context.Context, s *scene) error { return s.hold.Release(ctx) }, core.ErrLost},
		"release, twice":            {func(s *scene) { _ = s.hold.Release(context.Background()) }, func(ctx context.Context, s *scene) error { return s.hold.Release(ctx) }, core.ErrNotHeld},
		"release, no answer":        {func(s *scene) { s.proxy.HoldReply(faultproxy.Command("evalsha")) }, func(ctx context.Context, s *scene) error { return s.hold.Release(ctx) }, core.ErrUnavailable},
		"release, closed":           {func(s *scene) { _ = s.locks.Close(cancelled(context.Background())) }, func(ctx context.Context, s *scene) error { return s.hold.Release(ctx) }, core.ErrClosed},
		"refresh, lost":             {lose, func(ctx context.Context, s *scene) error { return s.hold.Refresh(ctx, time.Minute) }, core.ErrLost},
		"refresh, known to be lost": {known, func(ctx context.Context, s *scene) error { return s.hold.Refresh(s.ctx, time.Minute) }, core.ErrLost},
		"refresh, released":         {func(s *scene) { _ = s.hold.Release(context.Background()) }, func(ctx context.Context, s *scene) error { return s.hold.Refresh(ctx, time.Minute) }, core.ErrNotHeld},
		"refresh, closed":           {func(s *scene) { _ = s.locks.Close(cancelled(context.Background())) }, func(ctx context.Context, s *scene) error { return s.hold.Refresh(ctx, time.Minute) }, core.ErrClosed},
		"refresh, no lease":         {nil, func(ctx context.Context, s *scene) error { return s.hold.Refresh(ctx, 0) }, core.ErrInvalid},
		"leave, lost":               {lose, func(ctx context.Context, s *scene) error { return s.hold.Leave(ctx, time.Minute) }, core.ErrLost},
		"leave, no answer":          {func(s *scene) { s.proxy.HoldReply(faultproxy.Command("evalsha")) }, func(ctx context.Context, s *scene) error { return s.hold.Leave(ctx, time.Minute) }, core.ErrUnavailable},
		"acquire, closed":           {func(s *scene) { _ = s.locks.Close(cancelled(context.Background())) }, func(ctx context.Context, s *scene) error { return acquire(ctx, s.locks.Lock("other")) }, core.ErrClosed},
		"re-entry, closed":          {func(s *scene) { _ = s.locks.Close(cancelled(context.Background())) }, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.Lock("k")) }, core.ErrClosed},
		"under a closed client": {func(s *scene) { _ = s.locks.Close(cancelled(context.Background())) }, func(ctx context.Context, s *scene) error {
			return acquire(s.ctx, s.Redis.Locks().Lock("other"))
		}, core.ErrNotAcquired},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			s := &scene{Redis: b}
			s.locks, s.proxy = b.BehindAProxy()
			s.ctx, s.hold = locktest.MustAcquire(t, t.Context(), s.locks.Lock("k"), core.LeaseTime(10*time.Second))
			if tt.before != nil {
				tt.before(s)
			}
			locktest.WantOutcome(t, name, tt.do(t.Context(), s), tt.want)
		})
	}
}
