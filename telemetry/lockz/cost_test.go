package lockz_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// The page allocates twice for an acquisition and its hold, because of their contexts, and once more if the
// acquisition waits.
func TestObserver_Allocations(t *testing.T) {
	page, err := lockz.New()
	if err != nil {
		t.Fatal(err)
	}
	ctx, observer := t.Context(), page.Observer()
	for _, tt := range []struct {
		contended bool
		most      float64
	}{{false, 2}, {true, 3}} {
		const own = 1 // observeOne allocates the field
		got := testing.AllocsPerRun(1000, func() { observeOne(ctx, observer, "shop:order:1", tt.contended) })
		if got > tt.most+own {
			t.Errorf("contended %t: %v allocations, want %v at most", tt.contended, got-own, tt.most)
		}
	}
}

func benchPage(b *testing.B) *lockz.Page {
	b.Helper()
	p, err := lockz.New()
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkObserve measures the cost of the page for an acquisition and its hold. It makes the calls of core
// without core and Redis.
func BenchmarkObserve(b *testing.B) {
	for _, contended := range []bool{false, true} {
		b.Run("contended="+strconv.FormatBool(contended), func(b *testing.B) {
			o := benchPage(b).Observer()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					observeOne(b.Context(), o, "shop:order:"+strconv.Itoa(i%1000), contended)
				}
			})
		})
	}
}

func observeOne(ctx context.Context, o *core.Observer, key string, contended bool) {
	now := time.Now()
	a := core.Acquisition{Key: key, Keys: 1, Kind: core.KindReentrant, Label: "POST /orders/:id/pay", Start: now}
	observed := o.AcquireStart(ctx, a)
	if contended {
		o.Contention(observed, core.Contention{Acquisition: a, BlockedBy: "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:7"})
	}
	o.AcquireEnd(observed, core.AcquireResult{Acquisition: a, Outcome: core.OutcomeAcquired, Waited: 90 * time.Microsecond, Contended: contended})
	hold := core.HoldInfo{Acquisition: a, Field: "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:" + key[11:], Lease: 30 * time.Second, Acquired: now}
	held := o.HoldStart(ctx, hold)
	o.HoldEnd(held, core.HoldResult{HoldInfo: hold, Held: 3 * time.Millisecond})
}

// BenchmarkPage measures the page, and JSON with 1,000 rows, with 10,000 waiters that each hold a lock.
func BenchmarkPage(b *testing.B) {
	p := benchPage(b)
	o := p.Observer()
	for i := range 10_000 {
		n := strconv.Itoa(i)
		a := core.Acquisition{Key: "shop:order:" + n, Keys: 1, Kind: core.KindReentrant, Label: "pay", Start: time.Now()}
		o.HoldStart(b.Context(), core.HoldInfo{Acquisition: a, Field: "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:" + n, Acquired: time.Now()})
		a.Key = "shop:hot"
		ctx := o.AcquireStart(b.Context(), a)
		o.Contention(ctx, core.Contention{Acquisition: a})
	}
	for _, target := range []string{"/", "/?format=json"} {
		b.Run("GET "+target, func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
