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

// Endpoint is the data that serving the requests of a route needs besides its rules.
type Endpoint struct {
	Vars      *httpvars.Variables
	Params    []string // the names of the wildcards in the path
	Buffer    int      // the size of the largest response that is held back until the locks are free; 0 for no buffer
	ShowToken bool     // send the fencing token in failpolicy.TokenHeader
	TakesBack bool     // a rule says on_lost: fail, so an answer may be discarded
	AnyMethod bool     // the rules were put on the path for any method

	maxBody int64 // see [Config.MaxBody]: the limit for reading ahead here; Vars has the same limit for keys
	room    *room // for the bodies of waiting requests, shared by all routes
}

// Entry is a route with its compiled rules.
type Entry = aspect.Entry[Endpoint]

// Route describes a route to [Config.Compile].
type Route struct {
	ruleset.Endpoint

	Params    []string // the names of the wildcards in the path
	AnyParam  bool     // the Route stands for requests without a route: rules may read any wildcard
	AnyMethod bool     // see [Endpoint]
	Fallbacks []string // the names of all fallbacks
}

// Compile compiles the rules of a route, for [aspect.Adapter].Compile. If there are no rules, it returns neither a point
// nor an error.
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

// lateVariables names the variables that a client may send late.
func lateVariables() []string { return []string{"body", "form"} }

// checkLoss reports rules with on_lost: fail on a route without a buffer, because an answer that was sent cannot be
// taken back.
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

// Changes reports whether requests of a route may change something, for [aspect.Adapter].Changes.
func Changes(route ruleset.Endpoint) bool {
	return !slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE"}, route.Method)
}
