package ginlock_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

const orderKey = "order:#{path.id}"

// lock returns a Lock of the shop.
func (s *shop) lock(key string, further ...ruleset.Rule) gin.HandlerFunc {
	return ginlock.Lock(s.locks, key, further...)
}

// checkLocks fails the test if Check finds a problem of a Lock.
func (s *shop) checkLocks(t testing.TB) {
	t.Helper()
	if err := ginlock.Check(s.locks, s.engine); err != nil {
		t.Fatal(err)
	}
}

// panicOf returns the value with which do panics.
func panicOf(do func()) (value any) {
	defer func() { value = recover() }()
	do()
	return nil
}

// Lock finds every mistake that does not depend on the route.
func TestLock_Panics(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key     string
		further []ruleset.Rule
		says    []string
	}{
		"unknown variable":    {"order:#{pth.id}", nil, []string{"rule of Lock at ", "Key: 1:9: unknown name pth"}},
		"bad template":        {"order:#{path.id", nil, []string{"rule of Lock at ", "Key: 1:7: the part is not closed"}},
		"no key":              {"", nil, []string{"rule of Lock at ", "Key"}},
		"bad time":            {"k", []ruleset.Rule{{WaitTime: -5}}, []string{"rule of Lock at ", "WaitTime: -5ns is out of range"}},
		"unknown strategy":    {"k", []ruleset.Rule{{OnBusy: "skipp"}}, []string{"rule of Lock at ", "OnBusy", "skip"}},
		"unknown profile":     {"k", []ruleset.Rule{{Profile: "fastt"}}, []string{"rule of Lock at ", "fastt"}},
		"mixed fields":        {"k", []ruleset.Rule{{Debounce: time.Minute, LeaseTime: time.Second}}, []string{"rule of Lock at ", "LeaseTime", "debounced"}},
		"no permits":          {"k", []ruleset.Rule{{Kind: ruleset.Semaphore}}, []string{"rule of Lock at ", "Permits"}},
		"none":                {"k", []ruleset.Rule{{None: true}}, []string{"rule of Lock at ", "None"}},
		"two problems":        {"#{x}", []ruleset.Rule{{WaitTime: -5}}, []string{"2 problems", "unknown name x", "WaitTime"}},
		"two rules":           {"k", make([]ruleset.Rule, 2), []string{"Lock at ", "2 rules"}},
		"two keys":            {"k", []ruleset.Rule{{Key: "k"}}, []string{"Lock at ", "remove it from the rule"}},
		"an endpoint":         {"k", []ruleset.Rule{{Endpoint: ruleset.HTTP("POST /x")}}, []string{"Lock at ", "has the Endpoint http POST /x"}},
		"fallback":            {"k", []ruleset.Rule{{OnBusy: failpolicy.Fallback, Fallback: "queue"}}, []string{"rule of Lock at ", "WithFallback"}},
		"registered variable": {"#{user}", nil, []string{"rule of Lock at ", "unknown name user", "WithVariable"}},
		"answer taken back":   {"k", []ruleset.Rule{{OnLost: failpolicy.Fail}}, []string{"Lock at ", "OnLost: failpolicy.Fail", "WithBuffer"}},
	}
	locks := downClient(t)
	for name, tt := range tests {
		got := fmt.Sprint(panicOf(func() { ginlock.Lock(locks, tt.key, tt.further...) }))
		if !strings.HasPrefix(got, "ginlock: ") || !strings.Contains(got, "lock_test.go:") {
			t.Errorf("%s: the message does not say where:\n%s", name, got)
		}
		for _, part := range tt.says {
			if !strings.Contains(got, part) {
				t.Errorf("%s: the message does not contain %q:\n%s", name, part, got)
			}
		}
	}
	for name, bad := range map[string]*core.Client{
		"the lock client is nil": nil,
		"Rules is":               downClient(t, core.WithObserver(&core.Observer{Rules: (*aspect.Observer)(nil)})),
	} {
		got := fmt.Sprint(panicOf(func() { ginlock.Lock(bad, "k") }))
		if !strings.HasPrefix(got, "ginlock: Lock at ") || !strings.Contains(got, name) {
			t.Errorf("got %q, want %q", got, name)
		}
		wantText(t, ginlock.Check(bad, gin.New()), "ginlock: Check: ", name)
	}
}

func TestLock_Request(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(gin.RecoveryWithWriter(io.Discard))
		s.engine.POST(payPath, s.lock(orderKey, ruleset.Rule{WaitTime: 2 * time.Second}), func(c *gin.Context) {
			want(t, "key", core.MustHold(c.Request.Context(), "order:"+c.Param("id")).Key(), prefix+"order:"+c.Param("id"))
			if c.Query("panic") != "" {
				panic("boom")
			}
			c.Status(http.StatusNoContent)
		})
		s.engine.POST("/jobs", s.lock("jobs", ruleset.Rule{WaitTime: ruleset.NoWait, OnBusy: failpolicy.Skip}), ok)
		limited := ruleset.Rule{WaitTime: ruleset.NoWait, Kind: ruleset.Semaphore, Permits: 1}
		s.engine.POST("/limited", s.lock("limited", limited), func(c *gin.Context) {
			if c.Query("inner") == "" {
				want(t, "no permit", s.do(t, request{url: "/limited?inner=1"}).Code, http.StatusTooManyRequests)
			}
		})
		s.engine.POST("/brief/:id", s.lock(orderKey, ruleset.Rule{LeaseTime: time.Second}), func(c *gin.Context) { overrun(t, c) })
		s.engine.NoRoute(s.lock("proxy"), func(c *gin.Context) {
			want(t, "held", s.held(t, prefix+"proxy"), true)
			c.Status(http.StatusAccepted)
		})
		s.checkLocks(t)

		want(t, "free", s.do(t, request{}).Code, http.StatusNoContent)
		s.redis.Take(payKey, time.Hour)
		start := time.Now()
		w := s.do(t, request{})
		want(t, "taken", w.Code, http.StatusConflict)
		want(t, "waited", time.Since(start).Round(100*time.Millisecond), 2*time.Second)
		want(t, "Retry-After", w.Header().Get("Retry-After") != "", true)
		want(t, "another order", s.do(t, request{url: "/orders/43/pay"}).Code, http.StatusNoContent)
		s.redis.Free(payKey)
		want(t, "panic", s.do(t, request{url: payURL + "?panic=1"}).Code, http.StatusInternalServerError)
		want(t, "held after the panic", s.held(t, payKey), false)

		s.redis.Take(prefix+"jobs", time.Hour)
		want(t, "skipped", s.do(t, request{url: "/jobs"}).Code, http.StatusNoContent)
		want(t, "limited", s.do(t, request{url: "/limited"}).Code, http.StatusOK)
		want(t, "lost", s.do(t, request{url: "/brief/42"}).Code, http.StatusInternalServerError)
		want(t, "no route", s.do(t, request{url: "/nowhere"}).Code, http.StatusAccepted)

		s.close(t)
		want(t, "closed", s.do(t, request{}).Code, http.StatusServiceUnavailable)
	})
}

// A handler may pass gin's context or the context of the request to re-enter the lock.
func TestLock_Reenters(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.POST(payPath, s.lock(orderKey), func(c *gin.Context) {
			for _, ctx := range []context.Context{c, c.Request.Context()} {
				value, err := core.Call(ctx, s.locks.Lock("order:42"), func(context.Context) (int, error) { return 7, nil }, core.WaitTime(0))
				want(t, "error", err, nil)
				want(t, "value", value, 7)
			}
		})
		want(t, "status", s.do(t, request{}).Code, http.StatusOK)
	})
}

func TestLock_CheckNamesTheRoute(t *testing.T) {
	t.Parallel()
	var logged error
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(func(c *gin.Context) {
			c.Next()
			if last := c.Errors.Last(); last != nil {
				logged = last.Err
			}
		})
		orders := s.engine.Group("/orders", s.lock("order:#{path.orderID}"))
		orders.POST("/:orderID/pay", ok)
		orders.POST("/refunds/:orderId", func(*gin.Context) { t.Error("the handler ran") })
		const says = "rule of http POST /orders/refunds/:orderId: Key: 1:14: path parameter orderID does not exist: there is orderId"
		for name, err := range map[string]error{"Check": ginlock.Check(s.locks, s.engine), "Check of a guard": s.guard.Check(s.engine)} {
			wantText(t, err, says)
			if err != nil && strings.Contains(err.Error(), "/pay") {
				t.Errorf("%s reports the other route:\n%v", name, err)
			}
		}
		want(t, "the other route", s.do(t, request{}).Code, http.StatusNoContent)
		want(t, "status", s.do(t, request{url: "/orders/refunds/42"}).Code, http.StatusInternalServerError)
		wantText(t, logged, "path parameter orderID does not exist")
	})
	bubble(t, func(t *testing.T, s *shop) { // without Check
		s.engine.POST(payPath, s.lock("order:#{path.orderID}"), func(*gin.Context) { t.Error("the handler ran") })
		want(t, "status", s.do(t, request{}).Code, http.StatusInternalServerError)
	})
}

func TestLock_Check(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		register func(locks *core.Client, r *gin.Engine)
		says     string // part of the problem; "" for none
	}{
		"no Lock":       {func(_ *core.Client, r *gin.Engine) { r.POST("/x", ok) }, "the program has no Lock of this client"},
		"good":          {func(locks *core.Client, r *gin.Engine) { r.POST("/x", ginlock.Lock(locks, "x"), ok) }, ""},
		"on any method": {func(locks *core.Client, r *gin.Engine) { r.Any("/x", ginlock.Lock(locks, "x"), ok) }, ""},
		"without a route": {func(locks *core.Client, r *gin.Engine) {
			r.NoRoute(ginlock.Lock(locks, "x"), ok)
		}, ""},
		"Use after the routes": {func(locks *core.Client, r *gin.Engine) {
			r.POST("/x", ok)
			r.Use(ginlock.Lock(locks, "x"))
		}, "lock_test.go"},
		"last of the chain": {func(locks *core.Client, r *gin.Engine) {
			r.POST("/x", ok, ginlock.Lock(locks, "x"))
		}, "http POST /x: the guard is the last handler of the route"},
		"a recovered panic": {func(locks *core.Client, r *gin.Engine) {
			r.POST("/x", ginlock.Lock(locks, "x"), ok)
			_ = panicOf(func() { ginlock.Lock(locks, "#{y}") })
		}, "rule of Lock at "},
		"mixed kinds": {func(locks *core.Client, r *gin.Engine) {
			r.POST("/x", ginlock.Lock(locks, "x"), ok)
			r.POST("/y", ginlock.Lock(locks, "x", ruleset.Rule{Kind: ruleset.Fair}), ok)
		}, "fair"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, r := downClient(t, core.WithObserver((&record{}).observer())), gin.New()
			tt.register(locks, r)
			if err := ginlock.Check(locks, r); tt.says == "" {
				want(t, "Check", err, nil)
			} else {
				wantText(t, err, tt.says)
			}
			wantText(t, ginlock.Check(locks, r, nil), "engine is nil")
		})
	}
}

// Check of a guard checks its rules together with the rules of Lock. So does a reload.
func TestLock_BesideAGuard(t *testing.T) {
	t.Parallel()
	const file = "uncovered: error\nrules:\n  - {http: POST /both, key: file, wait_time: none"
	t.Run("one name", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, s *shop) {
			s.engine.Use(s.guard.Middleware(yaml(t, file+"}\n")))
			s.engine.POST("/both", s.lock("lock"), func(*gin.Context) { t.Error("the handler ran") })
			wantText(t, s.guard.Check(s.engine), "http POST /both: a rule", "is there twice")
			want(t, "status", s.do(t, request{url: "/both"}).Code, http.StatusInternalServerError)
		})
	})
	t.Run("two names", func(t *testing.T) {
		t.Parallel()
		rec := &record{}
		bubble(t, func(t *testing.T, s *shop) {
			p := &provider{set: yaml(t, file+"}\n")}
			s.engine.Use(s.guard.Middleware(p))
			s.engine.POST("/both", s.lock("lock", ruleset.Rule{Name: "inner", WaitTime: ruleset.NoWait}), func(c *gin.Context) {
				want(t, "holds", len(core.HoldsOf(c.Request.Context())), 2)
			})
			s.engine.POST("/lock", s.lock("other"), ok) // covered by its Lock
			s.check(t)
			s.check(t)
			want(t, "rules notified", len(rec.rules), 3)
			want(t, "status", s.do(t, request{url: "/both"}).Code, http.StatusOK)
			for _, key := range []string{"file", "lock"} {
				s.redis.Take(prefix+key, time.Hour)
				want(t, key+" taken", s.do(t, request{url: "/both"}).Code, http.StatusConflict)
				s.redis.Free(prefix + key)
			}
			wantText(t, p.push(yaml(t, file+", name: inner}\n")), "is there twice")
			wantText(t, p.push(yaml(t, file+"}\n  - {http: POST /lock, key: lock, name: more, kind: fair}\n")), "fair")
			p.reload(t, file+", on_busy: skip}\n")
		}, core.WithObserver(rec.observer()))
	})
	t.Run("no rule", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, s *shop) {
			wantText(t, s.guard.Check(s.engine), "the guard has no rules")
			_ = panicOf(func() { s.lock("#{y}") })
			wantText(t, s.guard.Check(s.engine), "rule of Lock at ", "unknown name y")
		})
	})
}

// The names of several Lock handlers are numbered in the order of the chain. The names are the labels of all observations.
func TestLock_TwoOnARoute(t *testing.T) {
	t.Parallel()
	rec := &record{}
	var holds []string // labels
	observer := rec.observer()
	observer.HoldEnd = func(_ context.Context, h core.HoldResult) { holds = append(holds, h.Label) }
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.POST(payPath, s.lock("a"), s.lock("b"), func(c *gin.Context) {
			want(t, "holds", len(core.HoldsOf(c.Request.Context())), 2)
		})
		s.checkLocks(t)
		want(t, "status", s.do(t, request{}).Code, http.StatusOK)
		var rules, decisions []string
		for _, info := range rec.rules {
			rules = append(rules, info.Rule)
		}
		for _, d := range rec.decisions {
			decisions = append(decisions, d.Rule)
		}
		const first, second = "POST " + payPath, "POST " + payPath + " (2)"
		wantAll(t, "rules", rules, first, second)
		wantAll(t, "decisions", decisions, second, first)
		wantAll(t, "holds", holds, second, first)
	}, core.WithObserver(observer))
}

func TestLock_Suspend(t *testing.T) {
	t.Parallel()
	rec := &record{}
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.POST(payPath, s.lock(orderKey, ruleset.Rule{WaitTime: ruleset.NoWait}), ok)
		s.handle(t, "POST", "/guarded/:id", ruleset.Rule{Key: orderKey, WaitTime: ruleset.NoWait}, ok)
		s.redis.Take(payKey, time.Hour)
		statuses := func(lock, guard int) {
			t.Helper()
			want(t, "Lock", s.do(t, request{}).Code, lock)
			want(t, "guard", s.do(t, request{url: "/guarded/42"}).Code, guard)
		}
		statuses(http.StatusConflict, http.StatusConflict)
		a, err := aspect.Of(s.locks)
		must(t, err)
		a.Suspend()
		statuses(http.StatusNoContent, http.StatusConflict)
		want(t, "reason", rec.decisions[2].Unlocked, aspect.UnlockedDisabled)
		a.Resume()
		s.guard.Aspect().Suspend()
		statuses(http.StatusConflict, http.StatusNoContent)
	}, core.WithObserver(rec.observer()))
}

// A client that can choose its address can choose the key of a Lock. WithClientIP of a guard does not change that.
func TestLock_ClientIP(t *testing.T) {
	t.Parallel()
	rec := &record{}
	locks, r := downClient(t, core.WithObserver(rec.observer())), gin.New()
	guard, err := ginlock.New(locks, ginlock.WithClientIP(func(*gin.Context) string { return "10.0.0.1" }))
	must(t, err)
	r.POST("/x", ginlock.Lock(locks, "#{client_ip}"), ok)
	want(t, "Check", guard.Check(r), nil)
	want(t, "warnings", len(rec.warnings), 1)
	wantText(t, rec.warnings[0], "POST /x", "client_ip")
}

func TestLock_Concurrent(t *testing.T) {
	t.Parallel()
	rec := &record{}
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.POST(payPath, s.lock(orderKey), ok)
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				w := httptest.NewRecorder()
				s.engine.ServeHTTP(w, request{url: fmt.Sprintf("/orders/%d/pay", i)}.build())
				want(t, "status", w.Code, http.StatusNoContent)
			})
		}
		all.Wait()
		want(t, "rules notified", len(rec.rules), 1)
	}, core.WithObserver(rec.observer()))
}

// A Lock that is created for every request is the same each time.
func TestLock_CreatedPerRequest(t *testing.T) {
	t.Parallel()
	rec := &record{}
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(gin.RecoveryWithWriter(io.Discard))
		s.engine.POST(payPath, func(c *gin.Context) { s.lock(orderKey)(c) }, ok)
		s.engine.POST("/wrong", func(c *gin.Context) { s.lock("#{x}")(c) }, func(*gin.Context) { t.Error("the handler ran") })
		for range 3 {
			want(t, "status", s.do(t, request{}).Code, http.StatusNoContent)
			want(t, "wrong", s.do(t, request{url: "/wrong"}).Code, http.StatusInternalServerError)
		}
		want(t, "rules notified", len(rec.rules), 1)
	}, core.WithObserver(rec.observer()))
}
