package lockz_test

import (
	"testing"

	"github.com/interlock-go/interlock/telemetry/lockz"
)

// An acquisition and its hold allocate twice here, for their contexts, and one more time when
// they wait.
func TestObserve_Allocations(t *testing.T) {
	page, err := lockz.New()
	if err != nil {
		t.Fatal(err)
	}
	ctx, observer := t.Context(), page.Observer()
	for _, tt := range []struct {
		contended bool
		most      float64
	}{{false, 2}, {true, 3}} {
		const own = 1 // the field that observeOne makes
		got := testing.AllocsPerRun(1000, func() { observeOne(ctx, observer, "shop:order:1", tt.contended) })
		if got > tt.most+own {
			t.Errorf("contended %t: %v allocations, want %v at most", tt.contended, got-own, tt.most)
		}
	}
}
