package core_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A function that is not there is a bad argument like the others: the lock is not taken for it.
func TestDo_WithoutAFunctionIsInvalid(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		for name, l := range map[string]core.Lock{
			"reentrant": locks.Lock("a"), "fenced": locks.FencedLock("b"), "spin": locks.SpinLock("c"),
			"multi": locks.MultiLock("d", "e"), "multi of one": locks.MultiLock("f"),
		} {
			err := l.Do(t.Context(), nil)
			locktest.WantErr(t, err, core.ErrInvalid)
			if err == nil || !strings.Contains(err.Error(), "Do without a function") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		locktest.WantSame(t, "keys", b.DBSize(t.Context()).Val(), 0)
	})
}
