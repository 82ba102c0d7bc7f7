package httpcall

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// Endpoint holds what [Serve] needs for a route besides its rules.
type Endpoint struct {
	Vars      *httpvars.Variables
	Params    []string // the names of the wildcards in the path
	Buffer    int      // the maximum size of a response that is held back until the locks are free; 0 means no buffer
	ShowToken bool     // send the fencing token in failpolicy.TokenHeader
	TakesBack bool     // a rule says on_lost: fail, so the guard may discard a response
	AnyMethod bool     // the route was registered for any method, and so were its rules

	maxBody int64 // the limit for reading a body ahead, see [Config.MaxBody]; Vars has the same limit for keys
	room    *room // limits the bodies of waiting requests of all routes
}

// Entry is a route with its compiled rules.
type Entry = aspect.Entry[Endpoint]

// Route describes a route for [Config.Compile].
type Route struct {
	ruleset.Endpoint

	Params    []string // the names of the wildcards in the path
	AnyParam  bool     // the Route stands for requests that match no route; its rules may read any wildcard
	AnyMethod bool     // see [Endpoint]
	Fallbacks []string // the names of all fallbacks
}

// Compile compiles the rules of a route, for [aspect.Adapter].Compile. If there are no rules, it returns no point and no
// error.
func (c *Config) Compile(a *aspect.Aspect, route Route, rules []*ruleset.Resolved) (*aspect.Point, Endpoint, error) {
	e := Endpoint{
		Params: route.Params, ShowToken: c.ShowToken, AnyMethod: route.AnyMethod, Buffer: c.bufferAll, maxBody: c.maxBody, room: c.room,
	}
	if n, own := c.buffers[route.Endpoint]; own {
		e.Buffer = n
	}
	if len(rules) == 0 {
		return nil, e, nil
	}
	var err error
	e.Vars, err = httpvars.New(httpvars.Config{
		PathParams: route.Params, AnyPathParam: route.AnyParam,
		Body: c.bodies[route.Endpoint], MaxBody: c.maxBody,
		CookieValue: c.CookieValue, Registered: c.registered,
	})
	if err != nil {
		return nil, e, err
	}
	point, err := a.Prepare(aspect.Site{
		Endpoint: route.Endpoint, Schema: e.Vars.Schema(), Late: lateVariables(), Fallbacks: route.Fallbacks,
	}, rules...)
	err = errors.Join(err, e.checkLoss(route, rules))
	return point, e, err
}

// lateVariables returns the names of the variables that a client may send late.
func lateVariables() []string { return []string{"body", "form"} }

// checkLoss reports rules with on_lost: fail on a route without a buffer, because the guard cannot discard a response that
// was sent. It sets e.TakesBack.
func (e *Endpoint) checkLoss(route Route, rules []*ruleset.Resolved) error {
	var problems []*ruleset.Problem
	for _, r := range rules {
		if r.OnLost != failpolicy.Fail {
			continue
		}
		e.TakesBack = true
		if e.Buffer > 0 || route.AnyParam {
			continue
		}
		option := "WithBuffer(64<<10)"
		if exactRoute(route.Endpoint) == nil {
			option = fmt.Sprintf("WithBuffer(64<<10, %q)", route.Label())
		}
		problems = append(problems, r.Problem("on_lost", fmt.Sprintf("the route has no buffer, so that an answer cannot be taken back: give %s, or write %s: %s",
			option, r.Spelled("on_lost", "on_lost"), r.Spelled("on_lost", string(failpolicy.Cancel)))))
	}
	return ruleset.Invalid(problems...)
}

// Changes reports whether requests of a route may modify data, for [aspect.Adapter].Changes.
func Changes(route ruleset.Endpoint) bool {
	return !slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE"}, route.Method)
}
