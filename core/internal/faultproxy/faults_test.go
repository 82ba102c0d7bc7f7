package faultproxy_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

func TestAnswerError_InPipeline(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		rule := r.proxy.AnswerError(faultproxy.Containing("n"), "BUSY a script runs")
		pipe := r.rdb.Pipeline()
		a, n, b := pipe.Incr(t.Context(), "a"), pipe.Incr(t.Context(), "n"), pipe.Incr(t.Context(), "b")
		_, _ = pipe.Exec(t.Context())
		if a.Val() != 1 || b.Val() != 1 || !redis.HasErrorPrefix(n.Err(), "BUSY ") {
			t.Errorf("got %d, %v, %d; want 1, BUSY, 1", a.Val(), n.Err(), b.Val())
		}
		r.wantN(t, "")
		if rule.Hits() != 1 || rule.Executed() != 0 {
			t.Errorf("%d hits, %d executed; want 1 and 0", rule.Hits(), rule.Executed())
		}
		rule.Remove()
		if err := r.rdb.Incr(t.Context(), "n").Err(); err != nil {
			t.Error(err)
		}
		r.wantN(t, "1")
	})
}
