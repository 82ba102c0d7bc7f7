package ginlock

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Option configures a [Guard].
type Option func(*config) error

// WithErrorWriter replaces [WriteProblem]: what answers a request that is refused,
// or whose lock was lost. The chain is aborted and Retry-After set when it is
// called. Send the status and, if at all, the refusal's Message; its Reason may
// name the key. Its Cause is empty on a route whose rules are broken. What it writes is
// the only answer; one without a status has the status of the refusal. A writer that writes
// nothing leaves the answer to a middleware outside; if there is none, the status is sent
// without a body.
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

// WithFallback registers the handler that runs instead where a rule's strategy is
// fallback and its Fallback is name. It holds no lock. [aspect.OutcomeFrom] of its
// request's context tells the cause.
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

// WithVariable registers a variable for keys and conditions, such as the
// authenticated user: #{user}, or with a struct #{user.Tenant}. An empty string or
// nil says that it is not set, and an error that it cannot be told; the program is
// at fault then, and the answer 500 whatever the rule says. value is called at most
// once per request and guard, and only if a rule uses the variable.
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

// WithBody says that the JSON bodies of routes are of type T, so that keys over
// body are checked at start-up against its JSON names. A route is a method and a
// path as registered, the base path of its group included: "POST /orders/:id/pay".
//
// Give it the type that the handler decodes into: the key then reads a body exactly as
// the handler does. Without it, a handler whose id is a float64 (2^53 and 2^53 + 1 are
// one number) or has the option ,string ("042" is 42) takes for one id what are two
// keys. A float64 itself is no part of a key: make it an int64 or a string in both.
func WithBody[T any](route string, more ...string) Option {
	return func(c *config) error { return c.Body(reflect.TypeFor[T](), append([]string{route}, more...)...) }
}

// WithMaxBody sets the largest body in bytes that keys may use (a larger one is
// answered with 413 where they do), and the largest that is read before a request
// waits. The handler gets all of it in any case. 1 or more. Default:
// 1 MiB.
func WithMaxBody(bytes int64) Option {
	return func(c *config) error { return c.MaxBody(bytes) }
}

// WithClientIP replaces [gin.Context.ClientIP] as the source of client_ip, which is as
// trustworthy as the engine's trusted proxies.
func WithClientIP(address func(c *gin.Context) string) Option {
	return func(c *config) error {
		if address == nil {
			return errors.New("WithClientIP: the function is nil: leave the option out for gin's ClientIP")
		}
		c.clientIP = address
		return nil
	}
}

// WithBuffer keeps responses back until the locks are free: of the routes given, or
// of all that have rules. A client that has read the answer then never meets its
// own lock, and an answer given after the lock was lost can be taken back, which
// on_lost: fail needs. Flushing has no effect meanwhile. A response of more bytes
// than given is let go when it exceeds them, and is as without this option; so is a
// switch of protocols. A size that is given for a route replaces the one for all
// routes.
func WithBuffer(bytes int, routes ...string) Option {
	return func(c *config) error { return c.Buffer(bytes, routes...) }
}

// WithTokenHeader shows clients the fencing token of the lock under which the handler
// ran, in the header [failpolicy.TokenHeader]: for those that pass it on to a store which refuses
// smaller ones. [ruleset.Fenced] has a token, and so has every other kind that one call holds
// at a time where its rule says Token; of several locks it is that of the last one with a
// token. An answer that is taken back because the lock was lost has none.
//
// The token tells when the lock was taken, or how often: do not show it to those who must
// not know how busy a shop is. Off by default.
func WithTokenHeader() Option {
	return func(c *config) error {
		c.ShowToken = true
		return nil
	}
}

// WithProfile adds a profile for rules given to [Guard.Handler] and [Guard.Handle],
// as [ruleset.WithProfile]. A [ruleset.Set] has its own.
func WithProfile(name string, r ruleset.Rule) Option {
	return func(c *config) error {
		c.aspect = append(c.aspect, aspect.WithProfile(name, r))
		return nil
	}
}

// WriteProblem is the default of [WithErrorWriter]: it answers with an RFC 9457
// problem document; see [httpcall.WriteProblem].
func WriteProblem(c *gin.Context, refusal *aspect.RefusedError) {
	httpcall.WriteProblem(c.Writer, refusal)
}
