package core_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
)

// A function that is not there is a bad argument like the others: the lock is not taken for it.
func TestDo_WithoutAFunctionIsInvalid(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		for name, l := range map[string]core.Lock{
			"reentrant": locks.Lock("a"), "fenced": locks.FencedLock("b"), "spin": locks.SpinLock("c"),
			"multi": locks.MultiLock("d", "e"), "multi of one": locks.MultiLock("f"),
		} {
			err := l.Do(t.Context(), nil)
			wantErr(t, err, core.ErrInvalid)
			if err == nil || !strings.Contains(err.Error(), "Do without a function") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		wantSame(t, "keys", b.DBSize(t.Context()).Val(), 0)
	})
}
