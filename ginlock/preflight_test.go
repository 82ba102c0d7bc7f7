package ginlock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// preflight is a question of a browser: may a page of another origin send a POST?
var preflight = request{method: http.MethodOptions, headers: map[string]string{
	"Origin": "https://shop.example", "Access-Control-Request-Method": "POST",
}}

// cors answers preflights, as middlewares for CORS do.
func cors(c *gin.Context) {
	if c.Request.Method == http.MethodOptions {
		c.AbortWithStatus(http.StatusNoContent)
	}
}

// A CORS preflight is not the operation: it takes the lock only where a rule names OPTIONS.
func TestPreflight(t *testing.T) {
	t.Parallel()
	in := func(endpoint string) ruleset.Rule {
		rule := pay
		rule.WaitTime, rule.Endpoint = ruleset.NoWait, ruleset.HTTP(endpoint)
		return rule
	}
	on := pay
	on.WaitTime = ruleset.NoWait
	set := func(endpoint string) func(*testing.T, *shop) {
		return func(t *testing.T, s *shop) {
			s.declare(t, in(endpoint))
			s.engine.Any(payPath, paid)
		}
	}
	for name, tt := range map[string]struct {
		routes func(t *testing.T, s *shop)
		r      request
		code   int
	}{
		"Handler of Any": {func(_ *testing.T, s *shop) { s.engine.Any(payPath, s.guard.Handler(on), paid) }, preflight, http.StatusOK},
		"Handler of a group": {func(_ *testing.T, s *shop) {
			group := s.engine.Group("", s.guard.Handler(on))
			group.POST(payPath, paid)
			group.OPTIONS(payPath, cors)
		}, preflight, http.StatusNoContent},
		"Handler before a middleware that answers": {func(_ *testing.T, s *shop) {
			rule := on
			rule.Key = "order:42"
			s.engine.Use(s.guard.Handler(rule), cors)
			s.engine.POST(payPath, paid)
		}, preflight, http.StatusNoContent},
		"every route":             {set("*"), preflight, http.StatusOK},
		"every method":            {set("* " + payPath), preflight, http.StatusOK},
		"every route below":       {set("* /orders/*"), preflight, http.StatusOK},
		"a rule of the set":       {set("OPTIONS " + payPath), preflight, http.StatusConflict},
		"a rule of what is below": {set("OPTIONS /orders/*"), preflight, http.StatusConflict},
		"Handle":                  {func(t *testing.T, s *shop) { s.handle(t, http.MethodOptions, payPath, on, paid) }, preflight, http.StatusConflict},
		"Handler that names OPTIONS": {func(_ *testing.T, s *shop) {
			s.engine.OPTIONS(payPath, s.guard.Handler(in("OPTIONS "+payPath)), paid)
		}, preflight, http.StatusConflict},
		"another request": {func(_ *testing.T, s *shop) { s.engine.Any(payPath, s.guard.Handler(on), paid) }, request{headers: preflight.headers}, http.StatusConflict},
		"no question":     {func(_ *testing.T, s *shop) { s.engine.Any(payPath, s.guard.Handler(on), paid) }, request{method: http.MethodOptions}, http.StatusConflict},
		"a changed method": {func(_ *testing.T, s *shop) {
			s.engine.Use(func(c *gin.Context) { c.Request.Method = http.MethodOptions })
			s.engine.POST(payPath, s.guard.Handler(on), paid)
		}, request{headers: preflight.headers}, http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				tt.routes(t, s)
				s.redis.Take(payKey, time.Hour)
				want(t, "status", s.do(t, tt.r).Code, tt.code)
			})
		})
	}
}

// A run begins no window if the handler says so, with gin's own context too, or adds an error to it.
// Package httplock has the statuses and methods.
func TestDebounce_WhatDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first   request
		handler gin.HandlerFunc
		begins  bool
	}{
		"a handler's word":   {request{}, func(c *gin.Context) { aspect.CancelDebounce(c.Request.Context()) }, false},
		"an error of gin":    {request{}, func(c *gin.Context) { _ = c.Error(http.ErrBodyNotAllowed); c.String(http.StatusOK, "ok") }, false},
		"success":            {request{}, answering(http.StatusCreated), true},
		"HEAD":               {request{method: http.MethodHead}, answering(http.StatusOK), false},
		"with gin's context": {request{}, func(c *gin.Context) { aspect.CancelDebounce(c) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				rule := ruleset.Rule{Key: pay.Key, Debounce: time.Hour}
				s.engine.Any(payPath, s.guard.Handler(rule), tt.handler)
				s.do(t, tt.first)
				want(t, "refused", s.do(t, request{}).Code == http.StatusTooManyRequests, tt.begins)
			})
		})
	}
}
