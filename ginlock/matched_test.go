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

// override is a middleware that changes the method as the client wishes.
func override(c *gin.Context) {
	if method := c.GetHeader("X-HTTP-Method-Override"); method != "" {
		c.Request.Method = method
	}
}

// overridden is a request whose method is changed on the way.
func overridden(method string) request {
	return request{headers: map[string]string{"X-HTTP-Method-Override": method}}
}

// declare puts rules over the routes that are registered later.
func (s *shop) declare(t testing.TB, rules ...ruleset.Rule) {
	t.Helper()
	s.engine.Use(s.guard.Middleware(goSet(t, rules)))
}

// answering makes a handler of its own each time, of one and the same text.
func answering(status int) gin.HandlerFunc { return func(c *gin.Context) { c.Status(status) } }

func payNow(method string) ruleset.Rule {
	return ruleset.Rule{Endpoint: ruleset.Route(method, payPath), Key: "order:#{path.id}", WaitTime: ruleset.NoWait}
}

// What gin matched is the route, whatever the method says now.
func TestRoute_MethodChangedByAnEarlierMiddlewareIsThatOfTheRoute(t *testing.T) {
	t.Parallel()
	guards := map[string]func(t *testing.T, s *shop){
		"Middleware": func(t *testing.T, s *shop) {
			s.declare(t, payNow("POST"))
			s.engine.POST(payPath, ok)
		},
		"Middleware, and a route without rules under the other method": func(t *testing.T, s *shop) {
			s.declare(t, payNow("POST"))
			s.engine.POST(payPath, answering(http.StatusNoContent))
			for _, method := range []string{"DELETE", "PUT", "PURGE"} {
				s.engine.Handle(method, payPath, answering(http.StatusTeapot))
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
						want(t, method+": taken", s.do(t, overridden(method)).Code, http.StatusConflict)
					}
					s.redis.Free(payKey)
					want(t, "free", s.do(t, overridden("DELETE")).Code, http.StatusNoContent)
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

// The type of a body is that of the route, too.
func TestRoute_BodyOfAChangedMethodHasTheTypeOfTheRoute(t *testing.T) {
	t.Parallel()
	type form struct {
		Ref string `json:"ref"`
	}
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(override)
		s.engine.POST(payPath, s.guard.Handler(ruleset.Rule{Key: "order:#{body.ref}"}), ok)
		r := overridden("DELETE")
		r.body = `{"ref":42}`
		want(t, "no text", s.do(t, r).Code, http.StatusBadRequest)
	}, ginlock.WithBody[form]("POST "+payPath))
}

// One function under several methods looks at the method itself, and so does the rule.
func TestRoute_OneFunctionUnderSeveralMethods(t *testing.T) {
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
		want(t, "changed to one that has a rule", s.do(t, overridden("DELETE")).Code, http.StatusConflict)
		want(t, "changed to one that has none", s.do(t, overridden("PUT")).Code, http.StatusNoContent)
		want(t, "ran", ran, 2)
		for range 3 {
			w := s.do(t, overridden("PURGE"))
			want(t, "changed to none of them", w.Code, http.StatusInternalServerError)
			want(t, "type", problemOf(t, w).Type, "about:blank")
			wantText(t, logged, payPath, "method", "HandleContext")
		}
		want(t, "ran", ran, 2)
		want(t, "warnings", len(rec.warnings), 1)
		free := overridden("PURGE")
		free.url = "/free"
		want(t, "where no method has a rule", s.do(t, free).Code, http.StatusNoContent)
	}, core.WithObserver(rec.observer()))
}

func TestRoute_OneFunctionUnderSeveralMethodsWithAHandler(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(override)
		s.engine.Any(payPath, s.guard.Handler(pay1()), ok)
		want(t, "as it came", s.do(t, request{}).Code, http.StatusNoContent)
		want(t, "changed to none of them", s.do(t, overridden("PURGE")).Code, http.StatusInternalServerError)
		s.redis.Take(payKey, time.Hour)
		want(t, "changed to another", s.do(t, overridden("PUT")).Code, http.StatusConflict)
	})
}

// Going on in the engine makes the other route the one that gin matched.
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
		s.engine.POST(payPath, answering(http.StatusTeapot))
		s.engine.DELETE(payPath, answering(http.StatusNoContent))
		s.redis.Take(payKey, time.Hour)
		want(t, "POST", s.do(t, request{}).Code, http.StatusTeapot)
		want(t, "DELETE", s.do(t, overridden("DELETE")).Code, http.StatusConflict)
	})
}

// A client cannot make the guard grow.
func TestRoute_InventedMethodsAreNotRemembered(t *testing.T) {
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
				r := overridden("M" + strings.Repeat("X", i))
				r.url = url
				s.do(t, r)
			}
		}
		want(t, "remembered", s.guard.Remembered(), before)
		want(t, "rules told to observers", len(rec.rules), rules)
	}, core.WithObserver(rec.observer()))
}

// A route is known from the engine of the request, also without Check.
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

// A client does not choose its key by another method.
func TestRoute_VariableMethodIsThatOfTheRoute(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(override)
		s.engine.POST(payPath, s.guard.Handler(ruleset.Rule{Key: "#{method}:#{path.id}", WaitTime: ruleset.NoWait}), ok)
		s.redis.Take(prefix+"POST:42", time.Hour)
		want(t, "status", s.do(t, overridden("PUT")).Code, http.StatusConflict)
	})
}
