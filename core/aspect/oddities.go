package aspect

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// oddities warns of rules of the point that most likely do not do what is meant: a key without
// a part of a request is one lock for all requests of the endpoint; a function that waits before
// it is skipped runs in every instance. Nothing is said of semaphores, and of rules that are
// switched off. A constant key of a function mostly is meant.
func (p *Point) oddities() []*ruleset.Problem { return oddities(p.compiled()) }

// Oddities warns of the same for rules that no program compiled.
func (p *Preview) Oddities() []*ruleset.Problem { return oddities(p.rules) }

func oddities(rules []*compiled) (warnings []*ruleset.Problem) {
	for _, c := range rules {
		e := c.subject.Endpoint
		isFunc := e.Transport == ruleset.TransportFunc
		switch {
		case c.Disabled || c.Kind == ruleset.Semaphore:
		case isFunc && c.OnBusy == failpolicy.Skip && c.wait != 0:
			warnings = append(warnings, c.Problem("on_busy", fmt.Sprintf("the function runs in every instance, one after the other, "+
				"because a call is skipped only after its wait: set %s to none (ruleset.NoWait), unless that is meant", c.Spelled("wait_time", "wait_time"))))
		case c.isFixed && !isFunc:
			field := "key"
			if c.Key == "" {
				field = "keys"
			}
			warnings = append(warnings, c.Problem(field, fmt.Sprintf("%q is one lock for all requests of the endpoint: "+
				"put a part such as #{%s} into it, unless that is meant", c.fixed.one, examplePart(e))))
		}
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
