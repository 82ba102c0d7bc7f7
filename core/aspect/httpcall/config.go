package httpcall

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// Config is what the options of an adapter say about its requests. Make it with
// [NewConfig].
type Config struct {
	// CookieValue is what handlers see of a cookie's value.
	CookieValue func(raw string) string

	// ShowToken shows clients the fencing token, in [failpolicy.TokenHeader].
	ShowToken bool

	// Canonical is a route as requests have it, for routers that register it in another
	// spelling; nil: the same.
	Canonical func(ruleset.Endpoint) ruleset.Endpoint

	maxBody    int64
	room       *room
	bodies     map[ruleset.Endpoint]reflect.Type
	buffers    map[ruleset.Endpoint]int
	bufferAll  int
	registered []keyexpr.Variable
	described  map[string]any // their types, for WriteRoutes
}

// NewConfig is a config with the defaults.
func NewConfig() Config {
	return Config{maxBody: httpvars.DefaultMaxBody, room: &room{}, bodies: map[ruleset.Endpoint]reflect.Type{}, described: map[string]any{}, buffers: map[ruleset.Endpoint]int{}}
}

// Body says of which type the JSON bodies of routes are: option WithBody.
func (c *Config) Body(t reflect.Type, routes ...string) error {
	return c.eachRoute("WithBody", routes, func(e ruleset.Endpoint) error {
		if c.bodies[e] != nil {
			return errors.New("given twice: remove one")
		}
		c.bodies[e] = t
		return nil
	})
}

// MaxBody sets the largest body in bytes that keys may use: option WithMaxBody.
func (c *Config) MaxBody(bytes int64) error {
	if bytes < 1 {
		return fmt.Errorf("WithMaxBody(%d): not a size: write 1 or more, such as 1<<20", bytes)
	}
	c.maxBody = bytes
	return nil
}

// Buffer keeps responses back until the locks are free, of all routes or of the given
// ones: option WithBuffer.
func (c *Config) Buffer(bytes int, routes ...string) error {
	switch {
	case bytes < 1 || bytes > math.MaxInt32:
		return fmt.Errorf("WithBuffer(%d): not a size: write 1 to %d bytes, such as 64<<10", bytes, math.MaxInt32)
	case len(routes) == 0 && c.bufferAll != 0:
		return fmt.Errorf("WithBuffer(%d): given twice for all routes: remove one, or name its routes", bytes)
	case len(routes) == 0:
		c.bufferAll = bytes
		return nil
	}
	return c.eachRoute("WithBuffer", routes, func(e ruleset.Endpoint) error {
		if c.buffers[e] != 0 {
			return errors.New("given twice: remove one")
		}
		c.buffers[e] = bytes
		return nil
	})
}

// Register declares a variable of the application: option WithVariable. Its value is
// that of [httpvars.Host].Registered, in the order of the calls.
func (c *Config) Register(name string, t reflect.Type) {
	c.registered = append(c.registered, keyexpr.Variable{Name: name, Type: keyexpr.GoType(t)})
	c.described[name] = describeType(t, goFields)
}

// Check finds bad names and types before any route is compiled.
func (c *Config) Check() error {
	var errs []error
	if _, err := httpvars.New(httpvars.Config{Registered: c.registered}); err != nil {
		errs = append(errs, fmt.Errorf("WithVariable: %w", err))
	}
	for route, body := range c.bodies {
		if _, err := httpvars.New(httpvars.Config{Body: body}); err != nil {
			errs = append(errs, fmt.Errorf("WithBody: route %q: %w", route.Label(), err))
		}
	}
	return errors.Join(errs...)
}

// Route is a route as it is compiled.
type Route struct {
	ruleset.Endpoint

	Params    []string // of its path
	AnyParam  bool     // it is none, and rules may read any
	AnyMethod bool     // of [Endpoint]
	Fallbacks []string // that there are
}

// Compile compiles the rules of a route: no point and no error without any. It is what
// [aspect.Adapter].Compile does.
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

// checkLoss reports rules that take an answer back on a route that keeps none back.
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

// Changes reports whether requests of a route may change something: for
// [aspect.Adapter].
func Changes(route ruleset.Endpoint) bool {
	return !slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE"}, route.Method)
}

// Unmatched reports the routes that options name and that do not exist.
func (c *Config) Unmatched(report *aspect.Report, routes []ruleset.Endpoint) {
	judge := aspect.Judge{Transport: ruleset.TransportHTTP, Endpoints: slices.SortedFunc(slices.Values(routes), byPath)}
	exist := func(option string, named []ruleset.Endpoint) {
		for _, e := range named {
			if !slices.Contains(routes, e) {
				report.Add(ruleset.Endpoint{}, fmt.Errorf("%s: route %q: %s", option, e.Label(), judge.Missing(e)))
			}
		}
	}
	exist("WithBody", slices.SortedFunc(maps.Keys(c.bodies), byPath))
	exist("WithBuffer", slices.SortedFunc(maps.Keys(c.buffers), byPath))
}

// byPath orders routes.
func byPath(a, b ruleset.Endpoint) int {
	return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
}

// canonical is a route as requests have it.
func (c *Config) canonical(e ruleset.Endpoint) ruleset.Endpoint {
	if c.Canonical == nil {
		return e
	}
	return c.Canonical(e)
}

// eachRoute parses routes and calls do for each; the error has every problem.
func (c *Config) eachRoute(option string, routes []string, do func(ruleset.Endpoint) error) error {
	var errs []error
	for _, text := range routes {
		e := c.canonical(ruleset.HTTP(text))
		err := exactRoute(e)
		if err == nil {
			err = do(e)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: route %q: %w", option, text, err))
		}
	}
	return errors.Join(errs...)
}

var methodName = regexp.MustCompile(`^[A-Z]+$`)

// exactRoute says what is wrong with a route that is not one method and one path.
func exactRoute(e ruleset.Endpoint) error {
	switch {
	case !methodName.MatchString(e.Method) || !strings.HasPrefix(e.Path, "/"):
		return errors.New(`write a method and a path as registered, such as "POST /orders/:id/pay"`)
	case strings.HasSuffix(e.Path, "/*"):
		return errors.New("name each route, without wildcards")
	default:
		return nil
	}
}
