package core_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

// app makes a lock client of an ACL user, whose rights change as the test says.
func (b *bed) app() (locks *core.Client, allow func(rules ...any)) {
	b.t.Helper()
	allow = func(rules ...any) {
		b.t.Helper()
		must(b.t, b.Do(b.t.Context(), append([]any{"acl", "setuser", "app"}, rules...)...).Err())
	}
	allow("on", ">pw", "~*", "&*", "+@all")
	opts := *b.Client.Options()
	opts.Username, opts.Password = "app", "pw"
	rdb := redis.NewClient(&opts)
	b.t.Cleanup(func() { _ = rdb.Close() })
	return locksOn(b.t, rdb, patient), allow
}

// A user who may not set a TTL gets no lock, and leaves none without a lease behind.
func TestAcquire_TTLForbiddenLeavesNoLock(t *testing.T) {
	t.Parallel()
	b := serverBed(t)
	locks, allow := b.app()
	allow("-pexpire")
	for _, lock := range []core.Lock{locks.Lock("k"), locks.FencedLock("f"), locks.SpinLock("s"), locks.MultiLock("a", "b")} {
		for _, wait := range []time.Duration{0, time.Minute} {
			_, _, err := lock.Acquire(t.Context(), core.WaitTime(wait))
			wantErr(t, err, core.ErrUnavailable)
		}
	}
	b.wantGone("k", "f", "s", "a", "b")
}

// A holder who may not set one any more cannot hand the lock over: it is freed.
func TestRelease_TTLForbiddenFreesInsteadOfHandingOver(t *testing.T) {
	t.Parallel()
	b := serverBed(t)
	locks, allow := b.app()
	core.LetRunsLast(locks)
	_, hold := acquired(t, t.Context(), locks.FencedLock("k"), core.LeaseTime(time.Minute))
	next := acquiring(t.Context(), locks.FencedLock("k"))
	waiters(t, locks, 1)
	allow("-pexpire")
	released(t, hold)
	wantErr(t, (<-next).err, core.ErrUnavailable)
	b.wantGone("k")
}
