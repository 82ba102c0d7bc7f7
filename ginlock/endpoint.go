package ginlock

import (
	"fmt"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr/httpvars"
)

// endpoint is one route with its rules, compiled.
type endpoint struct {
	guard  *Guard
	origin any // *declared or *chained; nil for what Handle made
	route  ruleset.Endpoint
	point  *aspect.Point
	vars   *httpvars.Variables
	buffer int   // bytes of the response that are kept back; 0 for none
	broken error // why the route answers 500; the fields above may be missing then
}

// serve runs the rest of the chain under the rules of the route.
func (e *endpoint) serve(c *gin.Context) {
	outer := frameOf(c)
	if outer.has(e) {
		return
	}
	if err := e.unusable(outer); err != nil {
		drain(c)
		e.guard.refuse(c, &aspect.RefusedError{
			Rule:    e.route.Label(),
			Status:  failpolicy.Cause("").Status(),
			Message: failpolicy.Cause("").Title(),
			Reason:  err,
		})
		return
	}
	newCall(e, c).run()
}

// unusable says why the route cannot be served, nil if it can.
func (e *endpoint) unusable(outer *frame) error {
	if e.broken != nil {
		return e.broken
	}
	for f := outer; f != nil; f = f.before() {
		if err := e.clash(f.endpoint); err != nil {
			return err
		}
	}
	return nil
}

// rules are those of an endpoint that works, nil where there is none.
func (e *endpoint) rules() []*ruleset.Resolved {
	if e == nil || e.broken != nil {
		return nil
	}
	return e.point.Rules()
}

// clash finds a rule that both endpoints have.
func (e *endpoint) clash(other *endpoint) error {
	if other.route != e.route {
		return nil
	}
	for _, r := range e.point.Rules() {
		for _, o := range other.point.Rules() {
			if r.Name == o.Name {
				return fmt.Errorf("ginlock: %s: a rule %q is there twice, from two of Handle, Handler and Middleware: remove one, "+
					"or give them names that differ; a rule file changes rules in Go that are given to ruleset.WithRules", e.route, r.Name)
			}
		}
	}
	return nil
}
