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
	clientIP   func(*http.Request) string // nil: that of the connection
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

// WithSet uses the HTTP rules of a set, laid over those given to [Guard.Handle]: a
// [*ruleset.Set], or a [*ruleset.Live], whose reloads the guard follows. Its rules for
// other transports are left alone. Not together with [WithRules] and [WithProfile],
// which belong into the making of the set.
func WithSet(p ruleset.Provider) Option {
	return func(c *config) error { return c.sources.Set(p) }
}

// WithRules declares rules in Go that name their routes: [ruleset.HTTP]. May be given
// several times.
func WithRules(rules ...ruleset.Rule) Option {
	return func(c *config) error {
		return errors.Join(c.sources.Rules(ruleset.HTTP("POST /orders/{id}/pay"), rules...)...)
	}
}

// WithProfile adds a profile for rules, as [ruleset.WithProfile].
func WithProfile(name string, r ruleset.Rule) Option {
	return func(c *config) error { return c.sources.Resolving(ruleset.WithProfile(name, r)) }
}

// WriteProblem is the default of [WithErrorWriter]; see [httpcall.WriteProblem].
func WriteProblem(w http.ResponseWriter, _ *http.Request, refusal *aspect.RefusedError) {
	httpcall.WriteProblem(httpcall.WriterOf(w), refusal)
}

// WithErrorWriter replaces [WriteProblem]: what answers a request that is refused, or
// whose lock was lost. Retry-After is set when it is called. Send the status and, if at
// all, the refusal's Message; its Reason may name the key. An answer without a status has
// the status of the refusal. Where it writes nothing, that is sent without a body.
func WithErrorWriter(write func(w http.ResponseWriter, r *http.Request, refusal *aspect.RefusedError)) Option {
	return func(c *config) error {
		if write == nil || c.writeError != nil {
			return errors.New("WithErrorWriter: nil, or given twice: leave the option out for problem documents")
		}
		c.writeError = write
		return nil
	}
}

// WithFallback registers the handler that runs instead where a rule's strategy is
// fallback and its Fallback is name. It holds no lock. [aspect.OutcomeFrom] of its
// request's context tells the cause.
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

// WithVariable registers a variable for keys and conditions, such as the authenticated
// user: #{user}, or with a struct #{user.Tenant}. An empty string, nil or an error is the
// program's fault, and the answer 500 whatever the rule says. value is called at most
// once per request, and only if a rule uses the variable.
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

// WithBody says that the JSON bodies of routes are of type T, best that of the handler,
// so that keys over body are checked at start-up against its JSON names. A route is a
// method and a path as registered: "POST /orders/{id}/pay".
func WithBody[T any](route string, more ...string) Option {
	return func(c *config) error { return c.Body(reflect.TypeFor[T](), append([]string{route}, more...)...) }
}

// WithMaxBody sets the largest body in bytes that keys may use (a larger one is answered
// with 413 where they do), and the largest that is read before a request waits.
// Default: 1 MiB.
func WithMaxBody(bytes int64) Option {
	return func(c *config) error { return c.MaxBody(bytes) }
}

// WithClientIP is the source of client_ip. Default: the address of the connection, which
// behind a proxy is the proxy's.
func WithClientIP(address func(r *http.Request) string) Option {
	return func(c *config) error {
		if address == nil {
			return errors.New("WithClientIP: the function is nil: leave the option out for the address of the connection")
		}
		c.clientIP = address
		return nil
	}
}

// WithBuffer keeps responses back until the locks are free: of the routes given, or of
// all that have rules. A client that has read the answer then never meets its own lock,
// and an answer given after the lock was lost can be taken back, which on_lost: fail
// needs. A response of more bytes than given is let go when it exceeds them; Flush sends
// nothing before that, so a route that streams is better left out. Informational answers
// such as 103 are sent at once, and a switch of protocols lets go.
func WithBuffer(bytes int, routes ...string) Option {
	return func(c *config) error { return c.Buffer(bytes, routes...) }
}

// WithTokenHeader shows clients the fencing token of the lock under which the handler
// ran, in the header [failpolicy.TokenHeader]. Off by default.
func WithTokenHeader() Option {
	return func(c *config) error {
		c.ShowToken = true
		return nil
	}
}
