package httplock

import (
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

func TestCutPattern(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]ruleset.Endpoint{
		"POST /orders/{id}":               ruleset.Route("POST", "/orders/{id}"),
		"POST \t/orders/{id}":             ruleset.Route("POST", "/orders/{id}"),
		"POST\t/orders/{id}":              ruleset.Route("POST", "/orders/{id}"),
		"POST example.org/orders/{id}":    ruleset.Route("POST", "/orders/{id}"),
		"example.org/orders/{id}":         ruleset.Route("*", "/orders/{id}"),
		"/orders/{id:[0-9 ]+}":            ruleset.Route("*", "/orders/{id:[0-9 ]+}"), // chi
		"/orders/:id":                     ruleset.Route("*", "/orders/:id"),
		"POST /orders/{id:[0-9 ]+}/state": ruleset.Route("POST", "/orders/{id:[0-9 ]+}/state"),
	} {
		if got := cutPattern(pattern); got != want {
			t.Errorf("%q: got %v, want %v", pattern, got, want)
		}
	}
}
