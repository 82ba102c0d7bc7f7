// Package httpvars offers the variables of an HTTP request to key expressions, as package
// keyexpr documents them. It needs net/http only; routers supply what they alone know
// through [Host].
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

// Config says which variables a route offers. The zero Config offers all
// standard ones, with no path parameters and an untyped body.
type Config struct {
	// PathParams are the parameters of the route. Any other name is an error.
	PathParams []string
	// AnyPathParam admits path parameters of any name, to judge rules whose route is
	// not known.
	AnyPathParam bool
	// Body is the Go type that JSON bodies are decoded into, best that of the handler;
	// expressions then use and are checked against its JSON names. Nil leaves the body
	// untyped.
	Body reflect.Type
	// BodyType is what else is known of the body; nil for nothing.
	BodyType *keyexpr.Type
	// MaxBody is the largest body in bytes; 0 is [DefaultMaxBody].
	MaxBody int64
	// CookieValue is what handlers see of a cookie's value, for routers that decode
	// it: a client could otherwise spell one value in several ways. Nil leaves it as
	// [net/http.Cookie] has it.
	CookieValue func(raw string) string
	// Registered are the application's own variables.
	Registered []keyexpr.Variable
}

// Host answers what only the router of a request knows. Its methods are called
// on the goroutine that builds the key, only if an expression needs them.
type Host interface {
	// PathValue returns the decoded value of a path parameter, "" if it has none.
	PathValue(name string) string
	// Route returns the pattern of the route.
	Route() string
	// ClientIP returns the client's address without a port.
	ClientIP() string
	// Registered returns the value of Config.Registered[i]; nil or an empty
	// string is unset.
	Registered(i int) (any, error)
}

// NetHTTP returns the [Host] of a request served by net/http's ServeMux: the
// client's address is the address of the connection. It has no registered variables.
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
