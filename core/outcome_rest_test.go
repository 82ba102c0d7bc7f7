package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// situation is a lock client that holds "a" and "b" as one lock, and "k".
type situation struct {
	*locktest.Redis

	locks *core.Client
	proxy *faultproxy.Proxy
	hold  *core.Hold // on "k"
	multi *core.Hold
}

func newSituation(b *locktest.Redis, t *testing.T) *situation {
	t.Helper()
	s := &situation{Redis: b}
	s.locks, s.proxy = b.BehindAProxy(core.WithMaxWaitersPerKey(1))
	_, s.hold = locktest.MustAcquire(t, t.Context(), s.locks.Lock("k"), core.LeaseTime(10*time.Second))
	_, s.multi = locktest.MustAcquire(t, t.Context(), s.locks.MultiLock("a", "b"), core.LeaseTime(10*time.Second))
	return s
}

// mute has Redis give no answer about a key.
func (s *situation) mute(key string) {
	s.proxy.HoldReply(faultproxy.All(faultproxy.Command("evalsha"), faultproxy.Containing(key)))
}

func (s *situation) close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.locks.Close(ctx)
}

// ending is a scene and what an operation comes to in it.
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

// What is asked of a lock, of a client, and of a hold that was handed over.
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

// acquire takes "k" as a stranger, until a deadline.
func (s *situation) acquire(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_, _, err := s.locks.Lock("k").Acquire(ctx)
	return err
}

// wait has another caller wait for "k".
func (s *situation) wait() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.acquire(context.Background(), 5*time.Second)
	}()
	s.T.Cleanup(func() { <-done })
	locktest.AwaitWaiters(s.T, s.locks, 1)
}

// The parts of a MultiLock may come to different ends: the whole has one, and that a part
// is lost comes first.
func TestErrors_OfAMultiLockMatchOneOutcome(t *testing.T) {
	t.Parallel()
	lost := func(s *situation) { s.Take("a", locktest.Stranger, time.Minute) }
	both := func(s *situation) { lost(s); s.mute("b") }
	known := func(s *situation) { // else the answer about "a" may be behind that about "b"
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
			s := newSituation(b, t)
			if tt.before != nil {
				tt.before(s)
			}
			locktest.WantOutcome(t, name, tt.do(t.Context(), s), tt.want)
		})
	}
}
