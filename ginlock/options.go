package ginlock

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Option configures a [Guard].
type Option func(*config) error

type config struct {
	httpcall.Config

	aspect     []aspect.Option
	fallbacks  map[string]gin.HandlerFunc
	variables  []func(*gin.Context) (any, error)
	clientIP   func(*gin.Context) string                // nil: gin.Context.ClientIP
	writeError func(*gin.Context, *aspect.RefusedError) // WriteProblem unless an option replaces it
}

func newConfig(opts []Option) (cfg config, problems []error) {
	cfg = config{Config: httpcall.NewConfig(), fallbacks: make(map[string]gin.HandlerFunc)}
	cfg.CookieValue, cfg.Canonical = cookieValue, canonical
	problems = aspect.Apply("", &cfg, opts)
	if cfg.writeError == nil {
		cfg.writeError = WriteProblem
	}
	return cfg, append(problems, cfg.Check())
}

// cookieValue returns the value of a cookie as [gin.Context.Cookie] does: decoded, or empty if it cannot be decoded.
func cookieValue(raw string) string {
	value, err := url.QueryUnescape(raw)
	if err != nil {
		return ""
	}
	return value
}

// WithErrorWriter replaces [WriteProblem], which answers requests that are refused or whose lock was lost. When the guard
// calls write, the chain is already aborted and Retry-After is set. Send the status of the refusal and at most its
// Message, because its Reason may name the key. Its Cause is empty on a route whose rules are broken. The guard drops
// everything that outer middlewares write after the answer of write. If write sets no status, the answer gets the
// status of the refusal. If write writes nothing, an outer middleware may answer. Otherwise the client gets the
// status without a body.
func WithErrorWriter(write func(c *gin.Context, refusal *aspect.RefusedError)) Option {
	return func(c *config) error {
		switch {
		case write == nil:
			return errors.New("WithErrorWriter: the function is nil: leave the option out for problem documents")
		case c.writeError != nil:
			return errors.New("WithErrorWriter: given twice: remove one")
		}
		c.writeError = write
		return nil
	}
}

// WithFallback registers a handler that runs instead of the guarded handler if the strategy of a rule is fallback
// and its Fallback is name. The handler holds no lock. [aspect.OutcomeFrom] returns the cause from the context of its
// request.
func WithFallback(name string, handler gin.HandlerFunc) Option {
	return func(c *config) error {
		switch {
		case name == "":
			return errors.New(`WithFallback: no name: write WithFallback("queue", …)`)
		case handler == nil:
			return fmt.Errorf("WithFallback(%q): the handler is nil", name)
		case c.fallbacks[name] != nil:
			return fmt.Errorf("WithFallback(%q): given twice: remove one", name)
		}
		c.fallbacks[name] = handler
		return nil
	}
}

// WithVariable registers a variable for keys and conditions, such as the authenticated user. A rule reads it as #{user}, or
// as #{user.Tenant} if T is a struct. If value returns an empty string or nil, the variable is not set. If it returns an
// error, the value cannot be determined. In both cases the program is at fault, and the answer is 500, whatever the rule
// says. Each guard calls value at most once per request, and only if a rule uses the variable.
func WithVariable[T any](name string, value func(c *gin.Context) (T, error)) Option {
	return func(c *config) error {
		if value == nil {
			return fmt.Errorf("WithVariable(%q): the function is nil", name)
		}
		c.Register(name, reflect.TypeFor[T]())
		c.variables = append(c.variables, func(c *gin.Context) (any, error) { return value(c) })
		return nil
	}
}

// WithBody declares that the JSON bodies of routes have type T. The guard then checks at start-up that keys and conditions
// read only fields of T, by their JSON names. A route is a method and a path as registered, including the base path of its
// group, such as "POST /orders/:id/pay".
//
// Use the type into which the handler decodes. The key then reads a body exactly as the handler does. With another
// type, two keys may be one id for the handler: 2^53 and 2^53 + 1 if the handler's id is a float64, "042" and "42" if
// it has the option ,string. A float64 cannot be a part of a key, so use an int64 or a string for the handler and the
// key.
func WithBody[T any](route string, more ...string) Option {
	return func(c *config) error { return c.Body(reflect.TypeFor[T](), append([]string{route}, more...)...) }
}

// WithMaxBody sets the maximum size in bytes of a body that keys may use and that the guard reads while a request
// waits. Over HTTP/2, a request with a larger body does not wait. If a key uses a larger body, the answer is 413. A
// handler that runs gets the whole body. The size is at least 1. Default: 1 MiB.
func WithMaxBody(bytes int64) Option {
	return func(c *config) error { return c.MaxBody(bytes) }
}

// WithClientIP sets the function that returns client_ip. By default it is [gin.Context.ClientIP], which clients can choose
// unless the trusted proxies of the engine are set.
func WithClientIP(address func(c *gin.Context) string) Option {
	return func(c *config) error {
		if address == nil {
			return errors.New("WithClientIP: the function is nil: leave the option out for gin's ClientIP")
		}
		c.clientIP = address
		return nil
	}
}

// WithBuffer makes the guard hold responses back until the locks are free. It applies to the given routes, or to all
// routes with rules if none are given. A client that has read the answer then never finds its own lock still held. The
// guard can also discard the answer of a handler whose lock was lost; on_lost: fail requires that. Until the locks are
// free, Flush sends nothing. If a response exceeds the given number of bytes or switches protocols, the guard sends it
// at once and holds nothing back any more. A size for a route replaces the size for all routes.
func WithBuffer(bytes int, routes ...string) Option {
	return func(c *config) error { return c.Buffer(bytes, routes...) }
}

// WithTokenHeader makes the guard send clients the fencing token of the lock under which the handler runs, in the header
// [failpolicy.TokenHeader]. A client can pass it on to a store that refuses smaller tokens.
// Locks of kind [ruleset.Fenced] have a token. So does every other kind that only one call holds at a time, if its rule
// sets Token. If there are several locks, the header contains the token of the last lock that has a token. If
// the lock was lost and the guard replaces the handler's answer, that answer has no token.
//
// The token reveals when the lock was taken, or how often. Do not show it to clients that must not know how busy
// the service is. Off by default.
func WithTokenHeader() Option {
	return func(c *config) error {
		c.ShowToken = true
		return nil
	}
}

// WithProfile adds a profile for rules given to [Guard.Handler] and [Guard.Handle], as [ruleset.WithProfile] does for
// the rules of a [ruleset.Set].
func WithProfile(name string, r ruleset.Rule) Option {
	return func(c *config) error {
		c.aspect = append(c.aspect, aspect.WithProfile(name, r))
		return nil
	}
}

// WriteProblem is the default of [WithErrorWriter]. It answers with an RFC 9457 problem document; see
// [httpcall.WriteProblem].
func WriteProblem(c *gin.Context, refusal *aspect.RefusedError) {
	httpcall.WriteProblem(c.Writer, refusal)
}
