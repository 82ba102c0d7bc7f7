package ginlock

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr/httpvars"
)

type config struct {
	rules      []aspect.Option
	observers  []aspect.Option
	fallbacks  map[string]gin.HandlerFunc
	variables  []variable
	bodies     map[ruleset.Endpoint]reflect.Type
	buffers    map[ruleset.Endpoint]int
	bufferAll  int
	maxBody    int64
	clientIP   func(*gin.Context) string // nil: gin's
	showToken  bool
	writeError func(*gin.Context, *aspect.RefusedError) // nil while no option gives it
}

// variable is one of the application's own.
type variable struct {
	name  string
	typ   reflect.Type
	value func(*gin.Context) (any, error)
}

func newConfig(opts []Option) (cfg config, problems []error) {
	cfg = config{
		fallbacks: make(map[string]gin.HandlerFunc),
		bodies:    make(map[ruleset.Endpoint]reflect.Type),
		buffers:   make(map[ruleset.Endpoint]int),
		maxBody:   DefaultMaxBody,
	}
	for _, opt := range opts {
		if opt == nil {
			problems = append(problems, errors.New("nil Option"))
			continue
		}
		problems = append(problems, opt(&cfg))
	}
	if cfg.writeError == nil {
		cfg.writeError = WriteProblem
	}
	return cfg, append(problems, cfg.checkVariables())
}

// checkVariables finds bad names and types before any route is compiled.
func (c *config) checkVariables() error {
	var errs []error
	if _, err := httpvars.New(httpvars.Config{Registered: c.registered()}); err != nil {
		errs = append(errs, fmt.Errorf("WithVariable: %w", err))
	}
	for route, body := range c.bodies {
		if _, err := httpvars.New(httpvars.Config{Body: body}); err != nil {
			errs = append(errs, fmt.Errorf("WithBody: route %q: %w", route.Label(), err))
		}
	}
	return errors.Join(errs...)
}

// registered declares the variables to httpvars, in their order.
func (c *config) registered() []httpvars.Registered {
	list := make([]httpvars.Registered, len(c.variables))
	for i, v := range c.variables {
		list[i] = httpvars.Registered{Name: v.name, Type: v.typ}
	}
	return list
}

// bufferOf is how many bytes of the responses of a route are kept back.
func (c *config) bufferOf(route ruleset.Endpoint) int {
	if n, ok := c.buffers[route]; ok {
		return n
	}
	return c.bufferAll
}
