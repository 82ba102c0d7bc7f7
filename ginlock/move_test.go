package ginlock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// Locks move to another Redis in two deployments, as examples/migrating says: step 0 takes the old lock, step 1 both, step 2
// the new lock. Instances of neighboring steps exclude each other; instances of steps 0 and 2 do not.
func TestHandle_MoveToAnotherRedis(t *testing.T) {
	t.Parallel()
	client := func(s *redistest.Server) *core.Client {
		locks, err := core.New(s.Client())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close(context.Background()) })
		return locks
	}
	before, after := redistest.New(t), redistest.New(t)
	// instance returns an instance of a step. Its handler calls during.
	instance := func(step int, during func()) *gin.Engine {
		engine, chain := gin.New(), []gin.HandlerFunc{}
		if step < 2 {
			guard, err := ginlock.New(client(before))
			if err != nil {
				t.Fatal(err)
			}
			chain = append(chain, guard.Handler(ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.NoWait}))
		}
		if step > 0 {
			guard, err := ginlock.New(client(after))
			if err != nil {
				t.Fatal(err)
			}
			chain = append(chain, guard.Handler(ruleset.Rule{Name: "moved", Key: "order:#{path.id}", WaitTime: ruleset.NoWait}))
		}
		engine.POST(payPath, append(chain, func(*gin.Context) { during() })...)
		return engine
	}
	call := func(engine *gin.Engine) int {
		w := httptest.NewRecorder()
		engine.ServeHTTP(w, request{}.build())
		return w.Code
	}
	for _, test := range []struct{ first, second, status int }{
		{0, 0, http.StatusConflict},
		{0, 1, http.StatusConflict},
		{1, 0, http.StatusConflict},
		{1, 1, http.StatusConflict},
		{1, 2, http.StatusConflict},
		{2, 1, http.StatusConflict},
		{2, 2, http.StatusConflict},
		{0, 2, http.StatusOK},
		{2, 0, http.StatusOK},
	} {
		second := instance(test.second, func() {})
		first := instance(test.first, func() {
			if got := call(second); got != test.status {
				t.Errorf("while step %d holds the lock, step %d answers %d, want %d", test.first, test.second, got, test.status)
			}
		})
		if got := call(first); got != http.StatusOK {
			t.Errorf("step %d answers %d", test.first, got)
		}
		if got := call(second); got != http.StatusOK {
			t.Errorf("after step %d, step %d answers %d", test.first, test.second, got)
		}
	}
}
