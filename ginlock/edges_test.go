package ginlock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

func TestHandler_WithoutNamesNestOnOneRoute(t *testing.T) {
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

// A handler for all routes does not make errors of requests that have none.
func TestHandler_ThatReadsThePathIsPassedByWithoutARoute(t *testing.T) {
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

// A name may be any text that Gin takes for one.
func TestHandler_ThatReadsAParameterOfAnyNameIsPassedByWithoutARoute(t *testing.T) {
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

func TestHandler_PassedByWithoutARouteIsStillJudgedByCheck(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(s.guard.Handler(ruleset.Rule{Key: "order:#{path.typo}"}))
		s.engine.POST(payPath, ok)
		want(t, "no route", s.do(t, request{url: "/nowhere"}).Code, http.StatusNotFound)
		wantText(t, s.guard.Check(s.engine), "rule of Handler at ", "path parameter typo does not exist")
	})
}
