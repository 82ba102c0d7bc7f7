package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// One thing has happened, and the error says which.
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
		"cancelled":                 {nil, func(ctx context.Context, s *scene) error { return acquire(cancelled(ctx), s.locks.Lock("other")) }, core.ErrNotAcquired},
		"re-entry, lost":            {lose, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.Lock("k")) }, core.ErrLost},
		"re-entry, known to be":     {known, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.Lock("k")) }, core.ErrLost},
		"re-entry, with a child":    {known, func(ctx context.Context, s *scene) error { return acquire(cancelled(s.ctx), s.locks.Lock("k")) }, core.ErrLost},
		"re-entry of several, lost": {lose, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.MultiLock("a", "k")) }, core.ErrLost},
		"another lock under a lost": {known, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.Lock("other")) }, core.ErrNotAcquired},
		"re-entry, lease over":      {func(*scene) { locktest.Pass(11 * time.Second) }, func(ctx context.Context, s *scene) error { return acquire(s.ctx, s.locks.Lock("k")) }, core.ErrLost},
		"re-entry, lost meanwhile": {func(s *scene) {
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
