package locktest_test

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// The table of kinds contains every kind that has scripts.
func TestKinds_Complete(t *testing.T) {
	t.Parallel()
	for i, kind := range redisstore.NewKinds().All() {
		scripts := kind.Name + "/"
		if i == 0 { // the reentrant lock
			scripts = ""
		}
		if !slices.ContainsFunc(locktest.Kinds(), func(k locktest.Kind) bool { return k.Scripts == scripts }) {
			t.Errorf("the table has no kind with the scripts %q", scripts)
		}
	}
}
