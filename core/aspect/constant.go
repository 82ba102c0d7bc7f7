package aspect

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// ConstantKeys warns of the rules of the point whose key has no part of a request, so that
// all requests of the endpoint share one lock: most likely a part was forgotten. Nothing
// is said of semaphores and of functions, which mostly mean it, and of rules that are
// switched off.
func (p *Point) ConstantKeys() []*ruleset.Problem { return constantKeys(p.rules) }

// ConstantKeys is [Point.ConstantKeys].
func (p *Preview) ConstantKeys() []*ruleset.Problem { return constantKeys(p.rules) }

func constantKeys(rules []*compiled) (warnings []*ruleset.Problem) {
	for _, c := range rules {
		e := c.subject.Endpoint
		if !c.isFixed || c.Disabled || c.Kind == ruleset.Semaphore || e.Transport == ruleset.TransportFunc {
			continue
		}
		field := "key"
		if c.Key == "" {
			field = "keys"
		}
		warnings = append(warnings, c.Problem(field, fmt.Sprintf("%q is one lock for all requests of the endpoint: "+
			"put a part such as #{%s} into it, unless that is meant", c.fixed.one, examplePart(e))))
	}
	return warnings
}

// examplePart is what tells requests of an endpoint apart, most likely.
func examplePart(e ruleset.Endpoint) string {
	if e.Transport == ruleset.TransportGRPC {
		return "req.order_id"
	}
	for segment := range strings.SplitSeq(e.Path, "/") {
		if name, is := strings.CutPrefix(segment, ":"); is {
			return "path." + name
		}
	}
	return "body.id"
}
