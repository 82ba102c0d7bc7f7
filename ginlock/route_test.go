package ginlock_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// override is a middleware that changes the method as the client asks.
func override(c *gin.Context) {
	if method := c.GetHeader("X-HTTP-Method-Override"); method != "" {
		c.Request.Method = method
	}
}

// overrideRequest returns a request whose method override changes.
func overrideRequest(method string) request {
	return request{headers: map[string]string{"X-HTTP-Method-Override": method}}
}

// declare applies rules to the routes that are registered later.
func (s *shop) declare(t testing.TB, rules ...ruleset.Rule) {
	t.Helper()
	s.engine.Use(s.guard.Middleware(goSet(t, rules)))
}

// answerWith returns a new closure of the same function literal each time.
func answerWith(status int) gin.HandlerFunc { return func(c *gin.Context) { c.Status(status) } }

func payNow(method string) ruleset.Rule {
	return ruleset.Rule{Endpoint: ruleset.Route(method, payPath), Key: "order:#{path.id}", WaitTime: ruleset.NoWait}
}

// The matched route determines the rules, whatever the method of the request.
func TestRoute_ChangedMethod(t *testing.T) {
	t.Parallel()
	guards := map[string]func(t *testing.T, s *shop){
		"Middleware": func(t *testing.T, s *shop) {
			s.declare(t, payNow("POST"))
			s.engine.POST(payPath, ok)
		},
		"Middleware, and a route without rules under the other method": func(t *testing.T, s *shop) {
			s.declare(t, payNow("POST"))
			s.engine.POST(payPath, answerWith(http.StatusNoContent))
			for _, method := range []string{"DELETE", "PUT", "PURGE"} {
				s.engine.Handle(method, payPath, answerWith(http.StatusTeapot))
			}
		},
		"Handler": func(_ *testing.T, s *shop) {
			s.engine.POST(payPath, s.guard.Handler(pay1()), ok)
		},
		"Handle": func(t *testing.T, s *shop) {
			s.handle(t, "POST", payPath, pay1(), ok)
		},
	}
	for name, guard := range guards {
		for _, checked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/checked %v", name, checked), func(t *testing.T) {
				t.Parallel()
				rec := &record{}
				bubble(t, func(t *testing.T, s *shop) {
					s.engine.Use(override)
					guard(t, s)
					if checked {
						want(t, "Check", s.guard.Check(s.engine), nil)
					}
					s.redis.Take(payKey, time.Hour)
					for _, method := range []string{"DELETE", "PUT", "PURGE", "purge", ""} {
						want(t, method+": taken", s.do(t, overrideRequest(method)).Code, http.StatusConflict)
					}
					s.redis.Free(payKey)
					want(t, "free", s.do(t, overrideRequest("DELETE")).Code, http.StatusNoContent)
					for _, d := range rec.decisions {
						want(t, "endpoint", d.Endpoint, ruleset.Route("POST", payPath))
					}
				}, core.WithObserver(rec.observer()))
			})
		}
	}
}

func pay1() ruleset.Rule {
	rule := pay
	rule.WaitTime = ruleset.NoWait
	return rule
}

// The matched route also determines the type of the body.
func TestRoute_ChangedMethodAndTheTypeOfTheBody(t *testing.T) {
	t.Parallel()
	type form struct {
		Ref string `json:"ref"`
	}
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(override)
		s.engine.POST(payPath, s.guard.Handler(ruleset.Rule{Key: "order:#{body.ref}"}), ok)
		r := overrideRequest("DELETE")
		r.body = `{"ref":42}`
		want(t, "no text", s.do(t, r).Code, http.StatusBadRequest)
	}, ginlock.WithBody[form]("POST "+payPath))
}

// A function that serves several methods reads the method itself, and so does the guard.
func TestRoute_OneFunctionForSeveralMethods(t *testing.T) {
	t.Parallel()
	rec := &record{}
	bubble(t, func(t *testing.T, s *shop) {
		var logged error
		s.engine.Use(override, func(c *gin.Context) {
			c.Next()
			logged = nil
			if e := c.Errors.Last(); e != nil {
				logged = e.Err
			}
		})
		s.declare(t, payNow("DELETE"))
		ran := 0
		s.engine.Any(payPath, func(c *gin.Context) { ran++; c.Status(http.StatusNoContent) })
		s.engine.Any("/free", func(c *gin.Context) { ran++; c.Status(http.StatusNoContent) })
		s.redis.Take(payKey, time.Hour)
		want(t, "as it came", s.do(t, request{}).Code, http.StatusNoContent)
		want(t, "changed to a method with a rule", s.do(t, overrideRequest("DELETE")).Code, http.StatusConflict)
		want(t, "changed to a method without a rule", s.do(t, overrideRequest("PUT")).Code, http.StatusNoContent)
		want(t, "ran", ran, 2)
		for range 3 {
			w := s.do(t, overrideRequest("PURGE"))
			want(t, "changed to an unknown method", w.Code, http.StatusInternalServerError)
			want(t, "type", problemOf(t, w).Type, "about:blank")
			wantText(t, logged, payPath, "method", "HandleContext")
		}
		want(t, "ran", ran, 2)
		want(t, "warnings", len(rec.warnings), 1)
		free := overrideRequest("PURGE")
		free.url = "/free"
		want(t, "where no method has a rule", s.do(t, free).Code, http.StatusNoContent)
	}, core.WithObserver(rec.observer()))
}

func TestRoute_OneFunctionForSeveralMethodsUnderHandler(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(override)
		s.engine.Any(payPath, s.guard.Handler(pay1()), ok)
		want(t, "as it came", s.do(t, request{}).Code, http.StatusNoContent)
		want(t, "changed to an unknown method", s.do(t, overrideRequest("PURGE")).Code, http.StatusInternalServerError)
		s.redis.Take(payKey, time.Hour)
		want(t, "changed to another", s.do(t, overrideRequest("PUT")).Code, http.StatusConflict)
	})
}

// After engine.HandleContext the other route is the matched route.
func TestRoute_HandleContextWithAnotherMethod(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(func(c *gin.Context) {
			if method := c.GetHeader("X-HTTP-Method-Override"); method != "" && c.Request.Method != method {
				c.Request.Method = method
				s.engine.HandleContext(c)
				c.Abort()
			}
		})
		s.declare(t, payNow("DELETE"))
		s.engine.POST(payPath, answerWith(http.StatusTeapot))
		s.engine.DELETE(payPath, answerWith(http.StatusNoContent))
		s.redis.Take(payKey, time.Hour)
		want(t, "POST", s.do(t, request{}).Code, http.StatusTeapot)
		want(t, "DELETE", s.do(t, overrideRequest("DELETE")).Code, http.StatusConflict)
	})
}

// Methods that clients invent do not increase the memory of the guard.
func TestRoute_InventedMethods(t *testing.T) {
	t.Parallel()
	rec := &record{}
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(override, s.guard.Handler(ruleset.Rule{Name: "all", Key: "all"}))
		s.declare(t, payNow("POST"))
		s.engine.POST(payPath, ok)
		s.engine.Any("/any", ok)
		s.do(t, request{})
		s.do(t, request{url: "/nowhere"})
		before, rules := s.guard.Remembered(), len(rec.rules)
		for i := range 100 {
			for _, url := range []string{payURL, "/any", "/nowhere"} {
				r := overrideRequest("M" + strings.Repeat("X", i))
				r.url = url
				s.do(t, r)
			}
		}
		want(t, "remembered", s.guard.Remembered(), before)
		want(t, "rules that observers got", len(rec.rules), rules)
	}, core.WithObserver(rec.observer()))
}

// The guard finds a route in the engine of the request, even without Check.
func TestRoute_OfAnyEngineAndMethod(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.declare(t, payNow("PURGE"), ruleset.Rule{Endpoint: ruleset.Route("POST", "/late"), Key: "order:42", WaitTime: ruleset.NoWait})
		s.engine.Handle("PURGE", payPath, ok)
		want(t, "a method of the program", s.do(t, request{method: "PURGE"}).Code, http.StatusNoContent)
		s.redis.Take(payKey, time.Hour)
		want(t, "a method of the program, taken", s.do(t, request{method: "PURGE"}).Code, http.StatusConflict)
		s.engine.PUT("/late", ok)
		want(t, "a route that comes late", s.do(t, request{method: "PUT", url: "/late"}).Code, http.StatusNoContent)
		s.engine.POST("/late", ok)
		want(t, "a method that comes later", s.do(t, request{url: "/late"}).Code, http.StatusConflict)
	})
}

// A client cannot choose its key by another method.
func TestRoute_VariableMethod(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(override)
		s.engine.POST(payPath, s.guard.Handler(ruleset.Rule{Key: "#{method}:#{path.id}", WaitTime: ruleset.NoWait}), ok)
		s.redis.Take(prefix+"POST:42", time.Hour)
		want(t, "status", s.do(t, overrideRequest("PUT")).Code, http.StatusConflict)
	})
}

func TestRoute_EscapedColonAndCatchAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		key := func(c *gin.Context) { c.String(http.StatusOK, ginlock.Hold(c).Key()) }
		s.handle(t, "POST", `/files/:dir/*rest`, ruleset.Rule{Key: "file:#{path.dir}:#{path.rest}"}, key)
		s.handle(t, "POST", `/jobs/:id/run\:now`, ruleset.Rule{Key: "job:#{path.id}"}, key)
		set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.HTTP("POST /set/:id/run:now"), Key: "set:#{path.id}"}})
		if err != nil {
			t.Fatal(err)
		}
		s.engine.Group("", s.guard.Middleware(set)).POST(`/set/:id/run\:now`, key)
		want(t, "Check", s.guard.Check(s.engine), nil)
		want(t, "catch-all", serve(s, request{url: "/files/d/a/b"}).Body.String(), prefix+"file:d:/a/b")
		want(t, "slash at the end of a catch-all", serve(s, request{url: "/files/d/a/b/"}).Body.String(), prefix+"file:d:/a/b/")
		want(t, "colon", serve(s, request{url: "/jobs/7/run:now"}).Body.String(), prefix+"job:7")
		want(t, "colon in a set", serve(s, request{url: "/set/7/run:now"}).Body.String(), prefix+"set:7")
		want(t, "Check after requests", s.guard.Check(s.engine), nil)
	})
}
