package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// An error of this package inside of another one says once, in one line, whose they are, and so
// does its text for logs.
func TestErrors_SayOnceWhoseTheyAre(t *testing.T) {
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
