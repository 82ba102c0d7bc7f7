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
	"github.com/interlock-go/interlock/keyexpr"
)

// Config collects the options of an adapter. Create it with [NewConfig].
type Config struct {
	// CookieValue decodes the value of a cookie into the form that the router gives to handlers.
	CookieValue func(raw string) string

	// ShowToken makes the guard send the fencing token to clients, in [failpolicy.TokenHeader].
	ShowToken bool

	// Canonical converts a registered route to the spelling that the router reports for requests. If Canonical is nil,
	// the two spellings are the same.
	Canonical func(ruleset.Endpoint) ruleset.Endpoint

	maxBody    int64
	room       *room
	bodies     map[ruleset.Endpoint]reflect.Type
	buffers    map[ruleset.Endpoint]int
	bufferAll  int
	registered []keyexpr.Variable
	types      map[string]reflect.Type // the types of the registered variables, for WriteRoutes
}

// NewConfig returns a config with the defaults.
func NewConfig() Config {
	return Config{
		maxBody: httpvars.DefaultMaxBody, room: &room{},
		bodies: map[ruleset.Endpoint]reflect.Type{}, buffers: map[ruleset.Endpoint]int{}, types: map[string]reflect.Type{},
	}
}

// Body declares the type of the JSON bodies of routes. It implements the option WithBody.
func (c *Config) Body(t reflect.Type, routes ...string) error {
	return c.eachRoute("WithBody", routes, func(e ruleset.Endpoint) error {
		if c.bodies[e] != nil {
			return errors.New("given twice: remove one")
		}
		c.bodies[e] = t
		return nil
	})
}

// MaxBody sets the size in bytes of the largest body that keys may use. It implements the option WithMaxBody.
func (c *Config) MaxBody(bytes int64) error {
	if bytes < 1 {
		return fmt.Errorf("WithMaxBody(%d): not a size: write 1 or more, such as 1<<20", bytes)
	}
	c.maxBody = bytes
	return nil
}

// Buffer makes the guard hold back responses of up to the given size until the locks are free. It applies to the given
// routes, or to all routes if none are given. It implements the option WithBuffer.
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

// Register declares a variable of the application. It implements the option WithVariable. The first call declares the
// variable with index 0 of [httpvars.Host].Registered, the next call index 1, and so on.
func (c *Config) Register(name string, t reflect.Type) {
	c.registered = append(c.registered, keyexpr.Variable{Name: name, Type: keyexpr.GoType(t)})
	c.types[name] = t
}

// Check reports invalid names and types before any route is compiled.
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

// Unmatched adds to report the routes that options name but that are not in routes.
func (c *Config) Unmatched(report *aspect.Report, routes []ruleset.Endpoint) {
	judge := aspect.Judge{Transport: ruleset.TransportHTTP, Endpoints: slices.SortedFunc(slices.Values(routes), byPath)}
	mustExist := func(option string, named []ruleset.Endpoint) {
		for _, e := range named {
			if !slices.Contains(routes, e) {
				report.Add(ruleset.Endpoint{}, fmt.Errorf("%s: route %q: %s", option, e.Label(), judge.Missing(e)))
			}
		}
	}
	mustExist("WithBody", slices.SortedFunc(maps.Keys(c.bodies), byPath))
	mustExist("WithBuffer", slices.SortedFunc(maps.Keys(c.buffers), byPath))
}

// byPath orders routes by path and method.
func byPath(a, b ruleset.Endpoint) int {
	return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
}

// canonical returns a route in the spelling that the router reports for requests.
func (c *Config) canonical(e ruleset.Endpoint) ruleset.Endpoint {
	if c.Canonical == nil {
		return e
	}
	return c.Canonical(e)
}

// eachRoute parses routes and calls do for each valid route. The error contains every problem.
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

// exactRoute returns an error unless a route is exactly one method and one path.
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
