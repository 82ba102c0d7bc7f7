package httplock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

// What the package comment advises to find a handler without its guard, of which Check does
// not know if the route was given to it.
func TestUnguardedHandler_IsFoundByAStrangersLockAndByMustHold(t *testing.T) {
	t.Parallel()
	const pattern = "POST /orders/{id}"
	for name, guarded := range map[string]bool{"guarded": true, "unguarded": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, httplock.WithRules(byID(func(r *ruleset.Rule) { r.Endpoint = ruleset.HTTP(pattern) })))
			unlocked := false
			var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { unlocked = recover() != nil }()
				core.MustHold(r.Context(), "order:"+r.PathValue("id"))
				ok(w, r)
			})
			if middleware := b.guard.Middleware(handler); guarded {
				handler = middleware
			}
			b.mux.Handle(pattern, handler)
			if err := b.guard.Check(pattern); err != nil {
				t.Fatal(err)
			}
			if b.do("POST", "/orders/42", nil); unlocked == guarded {
				t.Errorf("MustHold panicked: %t", unlocked)
			}
			b.redis.Take("order:42", time.Hour)
			if got := b.do("POST", "/orders/42", nil); (got.Code == http.StatusConflict) != guarded {
				t.Errorf("while a stranger holds the lock: got %d", got.Code)
			}
		})
	}
}
