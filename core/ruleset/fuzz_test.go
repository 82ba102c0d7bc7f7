package ruleset_test

import (
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// FuzzEndpoint: whatever is written as an endpoint is either refused, or found
// again under its own name.
func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{"POST /orders/:id/pay", "*", "* /a/*", "GET /files/*path", "/x", "get /", "GET  /a//b", "POST /*/x", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range []ruleset.Endpoint{ruleset.HTTP(text), ruleset.GRPC(text), ruleset.Func(text)} {
			set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: e, Name: "x", Key: "a"}})
			if err == nil && len(set.Match(e)) != 1 {
				t.Errorf("%q was accepted but is not found", e)
			}
		}
	})
}
