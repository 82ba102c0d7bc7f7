// Package httpvars supplies the variables of an HTTP request to key expressions. Package keyexpr
// documents the variables.
//
// The package depends on net/http and keyexpr. It does not depend on routers, rules or locks: a
// router supplies its values through [Host]. The HTTP adapters (ginlock, core/aspect/httplock) and
// command interlock call it: New at start-up, and Variables.Request for each request.
package httpvars

import (
	"net"
	"net/http"
	"net/netip"
	"reflect"

	"github.com/interlock-go/interlock/keyexpr"
)

// DefaultMaxBody is the largest body in bytes that expressions read.
const DefaultMaxBody = 1 << 20

// Config selects the variables of a route. The zero Config has all standard variables, without
// path parameters and with an untyped body.
type Config struct {
	// PathParams are the path parameters of the route. An expression with another path parameter does
	// not compile.
	PathParams []string
	// AnyPathParam permits path parameters of any name. It is for checking a rule whose route is
	// unknown.
	AnyPathParam bool
	// Body is the Go type into which JSON bodies are decoded, preferably the type that the handler
	// uses. Expressions are then checked against its JSON names. Nil leaves the body untyped.
	Body reflect.Type
	// BodyType replaces the type of the variable body, if it is not nil.
	BodyType *keyexpr.Type
	// MaxBody is the size of the largest body in bytes. 0 means [DefaultMaxBody].
	MaxBody int64
	// CookieValue decodes the value of a cookie as the router does, so that a client cannot spell
	// one value in several ways. Nil leaves the value of [net/http.Cookie] unchanged.
	CookieValue func(raw string) string
	// Registered are the variables that the application registers.
	Registered []keyexpr.Variable
}

// Host supplies the values that only the router of a request has. Request calls its methods on
// the goroutine that builds the key, and only if an expression needs them.
type Host interface {
	// PathValue returns the decoded value of a path parameter, or "" if the parameter has no value.
	PathValue(name string) string
	// Route returns the pattern of the route.
	Route() string
	// ClientIP returns the client's address without a port.
	ClientIP() string
	// Registered returns the value of Config.Registered[i]. Nil and the empty string mean
	// unset.
	Registered(i int) (any, error)
}

// NetHTTP returns the [Host] of a request that a ServeMux of net/http serves. Its client address
// is the address of the connection. It has no registered variables.
func NetHTTP(r *http.Request) Host { return netHTTP{r} }

type netHTTP struct{ request *http.Request }

// PathValue implements [Host].
func (n netHTTP) PathValue(name string) string { return n.request.PathValue(name) }

// Route implements [Host].
func (n netHTTP) Route() string { return n.request.Pattern }

// ClientIP implements [Host].
func (n netHTTP) ClientIP() string {
	if addr, err := netip.ParseAddrPort(n.request.RemoteAddr); err == nil {
		return addr.Addr().Unmap().String()
	}
	host, _, err := net.SplitHostPort(n.request.RemoteAddr)
	if err != nil {
		return n.request.RemoteAddr
	}
	return host
}

// Registered implements [Host].
func (n netHTTP) Registered(int) (any, error) {
	return nil, nil //nolint:nilnil // nil is unset
}
