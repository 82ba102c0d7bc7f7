package httplock

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Option configures a [Guard].
type Option func(*config) error

type config struct {
	httpcall.Config

	sources    aspect.Sources
	fallbacks  map[string]http.Handler
	variables  []func(*http.Request) (any, error)
	clientIP   func(*http.Request) string // nil: the address of the connection
	writeError func(http.ResponseWriter, *http.Request, *aspect.RefusedError)
}

func newConfig(opts []Option) (cfg config, problems []error) {
	cfg = config{Config: httpcall.NewConfig(), fallbacks: map[string]http.Handler{}}
	problems = aspect.Apply("", &cfg, opts)
	if cfg.writeError == nil {
		cfg.writeError = WriteProblem
	}
	return cfg, append(append(problems, cfg.sources.Check()...), cfg.Check())
}

// WithSet gives the guard the HTTP rules of p. They override the rules given to [Guard.Handle], field by field. p is a
// [*ruleset.Set] or a [*ruleset.Live]. The guard follows the reloads of a Live. It ignores rules for other transports.
// WithSet cannot be combined with [WithRules] and [WithProfile]: give [ruleset.WithRules] and [ruleset.WithProfile] to the
// set instead.
func WithSet(p ruleset.Provider) Option {
	return func(c *config) error { return c.sources.Set(p) }
}

// WithRules declares rules in Go. Each needs an Endpoint made with [ruleset.HTTP]. WithRules may be given several times.
func WithRules(rules ...ruleset.Rule) Option {
	return func(c *config) error {
		return errors.Join(c.sources.Rules(ruleset.HTTP("POST /orders/{id}/pay"), rules...)...)
	}
}

// WithProfile adds a profile for the rules given to [Guard.Handle] and [WithRules].
func WithProfile(name string, r ruleset.Rule) Option {
	return func(c *config) error { return c.sources.Resolving(ruleset.WithProfile(name, r)) }
}

// WriteProblem is the default of [WithErrorWriter]; see [httpcall.WriteProblem].
func WriteProblem(w http.ResponseWriter, _ *http.Request, refusal *aspect.RefusedError) {
	httpcall.WriteProblem(httpcall.WriterOf(w), refusal)
}

// WithErrorWriter replaces [WriteProblem], which answers requests that are refused or whose lock was lost.
// Retry-After is already set when the guard calls write. Send the status of the refusal and at most its Message, because
// its Reason may name the key. If write sets no status, the answer gets the status of the refusal. If write writes nothing,
// the guard sends that status without a body.
func WithErrorWriter(write func(w http.ResponseWriter, r *http.Request, refusal *aspect.RefusedError)) Option {
	return func(c *config) error {
		switch {
		case write == nil:
			return errors.New("WithErrorWriter: the function is nil: leave the option out for WriteProblem")
		case c.writeError != nil:
			return errors.New("WithErrorWriter: given twice: remove one")
		}
		c.writeError = write
		return nil
	}
}

// WithFallback registers a handler that runs instead of the guarded handler if the strategy of a rule is fallback
// and its Fallback is name. The fallback runs without the lock. It gets the reason for the refusal from [aspect.OutcomeFrom]
// with the context of its request.
func WithFallback(name string, handler http.Handler) Option {
	return func(c *config) error {
		switch {
		case name == "" || handler == nil:
			return fmt.Errorf(`WithFallback(%q): no name or no handler: write WithFallback("queue", …)`, name)
		case c.fallbacks[name] != nil:
			return fmt.Errorf("WithFallback(%q): given twice: remove one", name)
		}
		c.fallbacks[name] = handler
		return nil
	}
}

// WithVariable registers a variable for keys and conditions, such as the authenticated user. A rule reads it as #{user}, or
// as #{user.Tenant} if T is a struct. If value returns an empty string, nil or an error, the program is at fault. The answer
// is then 500, whatever the rule says. The guard calls value at most once per request, and only if a rule uses the
// variable.
func WithVariable[T any](name string, value func(r *http.Request) (T, error)) Option {
	return func(c *config) error {
		if value == nil {
			return fmt.Errorf("WithVariable(%q): the function is nil", name)
		}
		c.Register(name, reflect.TypeFor[T]())
		c.variables = append(c.variables, func(r *http.Request) (any, error) { return value(r) })
		return nil
	}
}

// WithBody declares that the JSON bodies of routes have type T. The guard then checks at start-up that keys and conditions
// read only fields of T, by their JSON names. Use the type into which the handler decodes the body. A route is a method and
// a path as registered, such as "POST /orders/{id}/pay".
func WithBody[T any](route string, more ...string) Option {
	return func(c *config) error { return c.Body(reflect.TypeFor[T](), append([]string{route}, more...)...) }
}

// WithMaxBody sets how many bytes of a body a key may use. The same limit applies when the guard reads a body while the
// request waits. Over HTTP/2, a request with a larger body does not wait. If a key uses a larger body, the answer is 413. A
// handler that runs gets the whole body. Default: 1 MiB.
func WithMaxBody(bytes int64) Option {
	return func(c *config) error { return c.MaxBody(bytes) }
}

// WithClientIP sets the function that returns client_ip. By default, client_ip is the address of the connection. If a proxy
// forwards the request, that is the address of the proxy.
func WithClientIP(address func(r *http.Request) string) Option {
	return func(c *config) error {
		if address == nil {
			return errors.New("WithClientIP: the function is nil: leave the option out for the address of the connection")
		}
		c.clientIP = address
		return nil
	}
}

// WithBuffer makes the guard hold responses back until the locks are free. It applies to the given routes, or to all routes
// with rules if none are given. A client that has read the answer then never finds its own lock still held. With a buffer
// the guard can also discard the answer of a handler that lost its lock. A rule with on_lost: fail therefore requires
// WithBuffer. If a response exceeds the given number of bytes, the guard sends it at once. Below that size Flush sends
// nothing. If you have routes that stream, list the other routes here. The guard sends informational answers such as 103 at
// once. It holds nothing back after a switch of protocols.
func WithBuffer(bytes int, routes ...string) Option {
	return func(c *config) error { return c.Buffer(bytes, routes...) }
}

// WithTokenHeader makes the guard send clients the fencing token of the lock under which the handler runs, in the header
// [failpolicy.TokenHeader]. It is off by default.
func WithTokenHeader() Option {
	return func(c *config) error {
		c.ShowToken = true
		return nil
	}
}
