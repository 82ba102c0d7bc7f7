package ginlock_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

func TestHandler_Refused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.redis.Take(payKey, time.Hour)
		var aborted bool
		s.engine.Use(func(c *gin.Context) { c.Next(); aborted = c.IsAborted() })
		s.engine.POST(payPath, s.guard.Handler(pay), func(*gin.Context) { t.Error("a middleware ran") }, func(*gin.Context) { t.Error("the handler ran") })
		start := time.Now()
		w := s.do(t, request{})
		want(t, "status", w.Code, http.StatusConflict)
		want(t, "aborted", aborted, true)
		want(t, "waited", time.Since(start).Round(100*time.Millisecond), 2*time.Second)
	})
}

func TestHandler_OnAGroup(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		g := s.engine.Group("/v1", s.guard.Handler(ruleset.Rule{Key: "#{path.id}@#{route}"}))
		for _, path := range []string{"/a/:id", "/b/:id"} {
			g.GET(path, func(c *gin.Context) { c.String(http.StatusOK, ginlock.Hold(c).Key()) })
		}
		want(t, "a", serve(s, request{method: "GET", url: "/v1/a/7"}).Body.String(), prefix+"7@/v1/a/%3Aid")
		want(t, "b", serve(s, request{method: "GET", url: "/v1/b/7"}).Body.String(), prefix+"7@/v1/b/%3Aid")
	})
}

func TestHandler_WithoutARoute(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.NoRoute(s.guard.Handler(ruleset.Rule{Key: "proxy", WaitTime: ruleset.NoWait}), func(c *gin.Context) {
			want(t, "held", s.held(t, prefix+"proxy"), true)
			c.Status(http.StatusAccepted)
		})
		want(t, "free", s.do(t, request{method: "GET", url: "/x"}).Code, http.StatusAccepted)
		s.redis.Take(prefix+"proxy", time.Hour)
		want(t, "taken", s.do(t, request{method: "GET", url: "/y"}).Code, http.StatusConflict)
	})
}

func TestHandle_OnAGroup(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		g := s.engine.Group("/tenants/:tenant")
		rule := ruleset.Rule{Key: "#{path.tenant}:order:#{path.id}"}
		if err := s.guard.Handle(g, "POST", "/orders/:id/", rule, func(c *gin.Context) {
			want(t, "held", s.held(t, prefix+"acme:order:1"), true)
			c.String(http.StatusOK, c.FullPath())
		}); err != nil {
			t.Fatal(err)
		}
		w := s.do(t, request{url: "/tenants/acme/orders/1/"})
		want(t, "route", w.Body.String(), "/tenants/:tenant/orders/:id/")
	})
}

func TestGuard_TwiceOnARoute(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.HTTP("POST " + payPath), Key: "order:#{path.id}", Debounce: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		s.engine.Use(s.guard.Middleware(set))
		g := s.engine.Group("", s.guard.Middleware(set))
		ran := 0
		g.POST(payPath, func(*gin.Context) { ran++ })
		want(t, "status", s.do(t, request{}).Code, http.StatusOK)
		want(t, "runs", ran, 1)
		want(t, "Check", s.guard.Check(s.engine), nil)
	})
}

func TestGuard_TwoRulesOfOneName(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.HTTP("POST " + payPath), Key: "order:#{path.id}"}})
		if err != nil {
			t.Fatal(err)
		}
		s.engine.Use(s.guard.Middleware(set))
		s.handle(t, "POST", payPath, pay, func(*gin.Context) { t.Error("the handler ran") })
		wantText(t, s.guard.Check(s.engine), "POST "+payPath, "is there twice", "names that differ")
		want(t, "status", s.do(t, request{}).Code, http.StatusInternalServerError)
		want(t, "held afterwards", s.held(t, payKey), false)
	})
}

func TestGuard_TwoRulesWithNames(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		inner := pay
		inner.Name = "inner"
		ran := 0
		s.engine.POST(payPath, s.guard.Handler(pay), s.guard.Handler(inner), func(*gin.Context) {
			ran++
			state, err := s.locks.Lock("order:42").State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, count := range state.Holders {
				want(t, "hold count", count, 2)
			}
		})
		want(t, "status", s.do(t, request{}).Code, http.StatusOK)
		want(t, "runs", ran, 1)
		want(t, "held afterwards", s.held(t, payKey), false)
	})
}

func TestHandler_WithoutNames(t *testing.T) {
	t.Parallel()
	rec := &record{}
	bubble(t, func(t *testing.T, s *shop) {
		handler := func(key string) gin.HandlerFunc {
			return s.guard.Handler(ruleset.Rule{Key: key, WaitTime: ruleset.NoWait})
		}
		tenant := handler("tenant:#{query.tenant}")
		s.engine.Use(tenant)
		s.engine.Group("", tenant, handler("order:#{path.id}")).POST(payPath, handler("third"), ok)
		s.engine.POST("/other", ok)
		s.check(t)
		const url = payURL + "?tenant=acme"
		want(t, "free", s.do(t, request{url: url}).Code, http.StatusNoContent)
		for _, key := range []string{"tenant:acme", "order:42", "third"} {
			s.redis.Take(prefix+key, time.Hour)
			want(t, key+" taken", s.do(t, request{url: url}).Code, http.StatusConflict)
			s.redis.Free(prefix + key)
		}
		want(t, "other", s.do(t, request{url: "/other?tenant=acme"}).Code, http.StatusNoContent)
		want(t, "Check after requests", s.guard.Check(s.engine), nil)
		var names []string
		for _, info := range rec.rules {
			names = append(names, info.Rule)
		}
		want(t, "rules", len(names), 4)
		for i, name := range []string{"POST /orders/:id/pay", "POST /orders/:id/pay (2)", "POST /orders/:id/pay (3)", "POST /other"} {
			want(t, "name", names[i], name)
		}
	}, core.WithObserver(rec.observer()))
}

// A Handler for all routes leaves requests without a route a 404.
func TestHandler_PathWithoutARoute(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rule   ruleset.Rule
		status int
	}{
		"a parameter":             {ruleset.Rule{Key: "order:#{path.id}"}, http.StatusNotFound},
		"a parameter in brackets": {ruleset.Rule{Key: `order:#{path["id"]}`}, http.StatusNotFound},
		"in a condition":          {ruleset.Rule{Key: "order", When: `path.id != ""`}, http.StatusNotFound},
		"no parameter":            {ruleset.Rule{Key: "order"}, http.StatusNotFound},
		"another mistake":         {ruleset.Rule{Key: "order:#{user}"}, http.StatusInternalServerError},
		"a mistake besides":       {ruleset.Rule{Key: "order:#{path.id}:#{user}"}, http.StatusInternalServerError},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.engine.HandleMethodNotAllowed = true
				s.engine.Use(s.guard.Handler(tt.rule))
				s.engine.POST(payPath, ok)
				for range 2 {
					want(t, "no route", s.do(t, request{url: "/nowhere"}).Code, tt.status)
				}
				if tt.status == http.StatusNotFound {
					want(t, "another method", s.do(t, request{method: "PUT"}).Code, http.StatusMethodNotAllowed)
					want(t, "a route", s.do(t, request{}).Code, http.StatusNoContent)
				}
			})
		})
	}
}

// The name of a parameter may be any string that gin accepts.
func TestHandler_ParameterWithoutARoute(t *testing.T) {
	t.Parallel()
	for _, rule := range []ruleset.Rule{
		{Key: `order:#{path["order-id"]}`},
		{Key: `order:#{ path [ 'order-id' ] }`},
		{Key: "order", When: `path?.["order-id"] != ""`},
	} {
		bubble(t, func(t *testing.T, s *shop) {
			s.engine.Use(s.guard.Handler(rule))
			s.engine.POST("/orders/:order-id", ok)
			want(t, "no route", s.do(t, request{url: "/nowhere"}).Code, http.StatusNotFound)
			want(t, "a route", s.do(t, request{url: "/orders/42"}).Code, http.StatusNoContent)
		})
	}
}

func TestHandler_WithoutARouteUnderCheck(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(s.guard.Handler(ruleset.Rule{Key: "order:#{path.typo}"}))
		s.engine.POST(payPath, ok)
		want(t, "no route", s.do(t, request{url: "/nowhere"}).Code, http.StatusNotFound)
		wantText(t, s.guard.Check(s.engine), "rule of http POST "+payPath, "path parameter typo does not exist")
	})
}

// A Handler for all routes does not change the status of a request without a route, whatever its rule reads and
// whatever its strategy for a missing key is.
func TestHandler_StatusWithoutARoute(t *testing.T) {
	t.Parallel()
	keys := map[string]ruleset.Rule{
		"route":                {Key: "#{route}"},
		"route in a condition": {Key: "order", When: `route == "/orders/:id/pay"`},
		"route and method":     {Key: "#{method}:#{route}"},
		"route and a header":   {Key: `#{route}:#{header["X-Id"]}`},
		"a header":             {Key: `#{header["X-Id"]}`},
		"the body":             {Key: "#{body.id}"},
	}
	strategies := map[string]failpolicy.Strategy{
		"error": failpolicy.Error, "skip": failpolicy.Skip, "null": failpolicy.NullResponse, "fallback": failpolicy.Fallback, "proceed": failpolicy.Proceed,
	}
	for name, rule := range keys {
		for word, strategy := range strategies {
			t.Run(name+" under "+word, func(t *testing.T) {
				t.Parallel()
				rule := rule
				rule.OnKey = strategy
				if strategy == failpolicy.Fallback {
					rule.Fallback = "queue"
				}
				bubble(t, func(t *testing.T, s *shop) {
					s.engine.HandleMethodNotAllowed = true
					s.engine.Use(s.guard.Handler(rule))
					s.engine.POST(payPath, ok)
					for range 2 {
						w := s.do(t, request{url: "/nowhere"})
						want(t, "no route", w.Code, http.StatusNotFound)
						want(t, "body", w.Body.String(), "404 page not found")
						w = s.do(t, request{method: "PUT"})
						want(t, "another method", w.Code, http.StatusMethodNotAllowed)
						want(t, "Allow", w.Header().Get("Allow"), "POST")
					}
				}, fallbackNamed("queue"))
			})
		}
	}
}

// The application's handler for requests without a route runs if the rule does not guard such requests.
func TestHandler_RouteVariableInNoRoute(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(s.guard.Handler(ruleset.Rule{Key: "#{route}"}))
		s.engine.POST(payPath, ok)
		s.engine.NoRoute(func(c *gin.Context) { c.String(http.StatusNotFound, "our page") })
		w := s.do(t, request{url: "/nowhere"})
		want(t, "status", w.Code, http.StatusNotFound)
		want(t, "body", w.Body.String(), "our page")
		s.redis.Take(prefix+strings.ReplaceAll(payPath, ":", "%3A"), time.Hour)
		want(t, "a route", s.do(t, request{}).Code, http.StatusConflict)
	})
}

// A handler for requests without a route never runs without the lock of its rule.
func TestHandler_WithoutARouteAndKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.NoRoute(s.guard.Handler(ruleset.Rule{Key: `proxy:#{header["X-Id"]}`}), func(c *gin.Context) {
			want(t, "held", s.held(t, prefix+"proxy:7"), true)
			c.Status(http.StatusAccepted)
		})
		want(t, "no key", s.do(t, request{url: "/x"}).Code, http.StatusNotFound)
		want(t, "a key", s.do(t, request{url: "/x", headers: map[string]string{"X-Id": "7"}}).Code, http.StatusAccepted)
	})
}

func fallbackNamed(name string) ginlock.Option {
	return ginlock.WithFallback(name, func(c *gin.Context) { c.String(http.StatusAccepted, name) })
}

// onlyFor returns a handler that calls h only for requests whose query names it.
func onlyFor(name string, h gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if slices.Contains(c.QueryArray("run"), name) {
			h(c)
		}
	}
}

// Handlers whose rules have no name may run for only some requests of a route and in any order. The default
// names of their rules stay the same for the route.
func TestHandler_ForSomeRequestsOnly(t *testing.T) {
	t.Parallel()
	requests := []string{"", "?run=a", "?run=b", "?run=a&run=b"}
	for order := range permutations(requests) {
		rec := &record{}
		bubble(t, func(t *testing.T, s *shop) {
			handler := func(key string) gin.HandlerFunc {
				return s.guard.Handler(ruleset.Rule{Key: key, WaitTime: ruleset.NoWait})
			}
			s.engine.POST(payPath, onlyFor("a", handler("a")), onlyFor("b", handler("b")), handler("always"), ok)
			for _, query := range slices.Concat(order, order) {
				want(t, "status of "+query, s.do(t, request{url: payURL + query}).Code, http.StatusNoContent)
			}
			for key, query := range map[string]string{"a": "?run=a", "b": "?run=a&run=b", "always": ""} {
				s.redis.Take(prefix+key, time.Hour)
				want(t, key+" taken", s.do(t, request{url: payURL + query}).Code, http.StatusConflict)
				s.redis.Free(prefix + key)
			}
			var names []string
			for _, info := range rec.rules {
				names = append(names, info.Rule)
			}
			wantAll(t, "names", names, "POST "+payPath, "POST "+payPath+" (2)", "POST "+payPath+" (3)")
		}, core.WithObserver(rec.observer()))
	}
}

// permutations returns all orders of a list.
func permutations(list []string) func(yield func([]string) bool) {
	var from func(done, rest []string, yield func([]string) bool) bool
	from = func(done, rest []string, yield func([]string) bool) bool {
		if len(rest) == 0 {
			return yield(done)
		}
		for i := range rest {
			others := slices.Delete(slices.Clone(rest), i, i+1)
			if !from(append(slices.Clip(done), rest[i]), others, yield) {
				return false
			}
		}
		return true
	}
	return func(yield func([]string) bool) { from(nil, list, yield) }
}

func TestHandler_WithoutNamesConcurrently(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		handler := func(key string) gin.HandlerFunc { return s.guard.Handler(ruleset.Rule{Key: key}) }
		s.engine.POST(payPath, onlyFor("a", handler("a")), onlyFor("b", handler("b")), ok)
		var requests sync.WaitGroup
		for range 10 {
			for _, query := range []string{"?run=a", "?run=b", "?run=a&run=b"} {
				requests.Go(func() {
					want(t, "status of "+query, s.do(t, request{url: payURL + query}).Code, http.StatusNoContent)
				})
			}
		}
		requests.Wait()
	})
}

// A Handler that is created again for every request is the same each time.
func TestHandler_CreatedPerRequest(t *testing.T) {
	t.Parallel()
	rec := &record{}
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.POST(payPath, func(c *gin.Context) { s.guard.Handler(pay)(c) }, ok)
		for range 20 {
			want(t, "status", s.do(t, request{}).Code, http.StatusNoContent)
		}
		want(t, "rules notified", len(rec.rules), 1)
		want(t, "name", rec.rules[0].Rule, "POST "+payPath)
		s.redis.Take(payKey, time.Hour)
		want(t, "taken", s.do(t, request{}).Code, http.StatusConflict)
	}, core.WithObserver(rec.observer()))
}

// A middleware behind the guard commits after the handler has returned. Until then, no other request may read uncommitted
// data.
func TestHandler_LockOutlivesATransaction(t *testing.T) {
	t.Parallel()
	type register func(t *testing.T, s *shop, chain ...gin.HandlerFunc)
	for name, register := range map[string]register{
		"Handle": func(t *testing.T, s *shop, chain ...gin.HandlerFunc) {
			t.Helper()
			s.handle(t, http.MethodPost, payPath, pay, chain...)
		},
		"Handler": func(_ *testing.T, s *shop, chain ...gin.HandlerFunc) {
			s.engine.Use(s.guard.Handler(pay)).POST(payPath, chain...)
		},
		"Middleware": func(t *testing.T, s *shop, chain ...gin.HandlerFunc) {
			t.Helper()
			rule := pay
			rule.Endpoint = ruleset.Route(http.MethodPost, payPath)
			s.engine.Use(s.guard.Middleware(goSet(t, []ruleset.Rule{rule})), chain[0]).POST(payPath, chain[1])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				var steps []string
				transaction := func(c *gin.Context) {
					steps = append(steps, "begin")
					want(t, "held at the begin", s.held(t, payKey), true)
					c.Next()
					steps = append(steps, "commit")
					want(t, "held at the commit", s.held(t, payKey), true)
					want(t, "cancelled at the commit", c.Request.Context().Err(), nil)
				}
				register(t, s, transaction, func(c *gin.Context) {
					steps = append(steps, "handler")
					c.String(http.StatusCreated, "paid")
				})
				want(t, "status", s.do(t, request{}).Code, http.StatusCreated)
				want(t, "held after the response", s.held(t, payKey), false)
				if !slices.Equal(steps, []string{"begin", "handler", "commit"}) {
					t.Errorf("got %q", steps)
				}
			})
		})
	}
}
