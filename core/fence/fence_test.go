package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/fence"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A store of pausedHolder.
type store struct {
	write func(ctx context.Context, token int64) error
	last  func() int64 // returns the token of the last write
}

// A holder is stopped for longer than its lease, and then writes. Before that another holder acquires the lock and writes.
func TestPausedHolder(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, b *locktest.Redis) store{"redis": inRedis, "sql": inSQL} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			s := open(t, b)
			lock := b.Locks().FencedLock("account:42")
			held, hold, err := lock.Acquire(t.Context(), core.LeaseTime(time.Second))
			locktest.Must(t, err)
			locktest.WantOK(t, s.write(held, hold.Token()))
			locktest.Pass(2 * time.Second) // the first holder is stopped
			var second int64
			locktest.WantOK(t, lock.Do(t.Context(), func(ctx context.Context) error {
				second = core.MustHold(ctx, "account:42").Token()
				return s.write(ctx, second)
			}))
			if !errors.Is(context.Cause(held), core.ErrLost) {
				t.Errorf("the context of the first holder: %v", context.Cause(held))
			}
			// The first holder's write was on its way: it does not look at the context.
			if err := s.write(t.Context(), hold.Token()); !errors.Is(err, fence.ErrStale) {
				t.Errorf("the late write: %v", err)
			}
			locktest.WantSame(t, "the token of the last write", s.last(), second)
		})
	}
}

// inRedis returns a store that writes by Command.
func inRedis(t *testing.T, b *locktest.Redis) store {
	return store{
		func(ctx context.Context, token int64) error {
			return fence.Command(ctx, b.Client, token, "HSET", "balance:42", "by", token).Err()
		},
		func() int64 {
			by, err := b.HGet(t.Context(), "balance:42", "by").Int64()
			locktest.WantOK(t, err)
			return by
		},
	}
}

// inSQL returns a store that writes by Table.Do.
func inSQL(t *testing.T, _ *locktest.Redis) store {
	d := newDatabase(t)
	return store{
		func(ctx context.Context, token int64) error {
			return d.fences.Do(ctx, d.DB, "account:42", token, func(tx *sql.Tx) error { return note(tx, token) })
		},
		func() int64 { return d.now().noted },
	}
}

func TestToken_Refused(t *testing.T) {
	t.Parallel()
	rdb := locktest.Embedded(t).Client
	for _, token := range []int64{0, -1, 1 << 53} {
		d := newDatabase(t)
		for what, err := range map[string]error{
			"Command": fence.Command(t.Context(), rdb, token, "SET", "k", "v").Err(),
			"Do":      d.fences.Do(t.Context(), d.DB, "k", token, func(*sql.Tx) error { t.Error("fn ran"); return nil }),
			"Claim":   d.inTx(t, func(tx *sql.Tx) error { return d.fences.Claim(t.Context(), tx, "k", token) }),
		} {
			if err == nil || errors.Is(err, fence.ErrNoToken) != (token == 0) {
				t.Errorf("%s with token %d: %v", what, token, err)
			}
		}
		if said := d.statements(); len(said) > 0 {
			t.Errorf("token %d: the database has seen %q", token, said)
		}
	}
	locktest.WantSame(t, "keys", rdb.DBSize(t.Context()).Val(), 0)
}
