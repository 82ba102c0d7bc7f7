package ruleset

import "strings"

// Transport says what kind of endpoint an [Endpoint] is.
type Transport string

// The transports.
const (
	TransportHTTP Transport = "http"
	TransportGRPC Transport = "grpc"
	TransportFunc Transport = "func"
)

// Endpoint is the place where rules apply. It is a comparable value and costs no
// allocation to build from its parts.
//
// A `*` stands for any method, and at the end of a path for everything below it.
// Where several endpoints with rules match a call, only the rules of the most
// exact one apply: an exact path before a longer `/*` prefix before a shorter
// one, and then an exact method before `*`.
type Endpoint struct {
	Transport Transport
	Method    string // of HTTP: "POST" or "*"; else empty
	Path      string // "/orders/:id/pay", "/pkg.Service/Method", a function's name, or "*"
}

// HTTP is an HTTP endpoint: a method and the route as it was registered, such as
// "POST /orders/:id/pay". Wildcards: "* /orders/:id", "POST /api/*", "*". It does
// not fail; [NewSet] reports what is malformed.
func HTTP(route string) Endpoint {
	if route == "*" {
		return Endpoint{TransportHTTP, "*", "*"}
	}
	method, path, _ := strings.Cut(strings.TrimSpace(route), " ")
	return Endpoint{TransportHTTP, method, strings.TrimLeft(path, " ")}
}

// Route is the HTTP endpoint of a method and a registered route. It does not
// allocate.
func Route(method, path string) Endpoint { return Endpoint{TransportHTTP, method, path} }

// GRPC is a gRPC endpoint: the full method "/pkg.Service/Method". Wildcards:
// "/pkg.Service/*", "*". It does not allocate.
func GRPC(fullMethod string) Endpoint { return Endpoint{TransportGRPC, "", fullMethod} }

// Func is a function, under the name that its rule is to have in metrics.
func Func(name string) Endpoint { return Endpoint{TransportFunc, "", name} }

// IsZero reports whether no endpoint was given.
func (e Endpoint) IsZero() bool { return e == Endpoint{} }

// String is the endpoint as in a declaration, such as "http POST /orders/:id/pay".
func (e Endpoint) String() string {
	if e.IsZero() {
		return ""
	}
	return string(e.Transport) + " " + e.Label()
}

// Label is the endpoint without its transport: the default name of its rule.
func (e Endpoint) Label() string {
	if e.Method == "" {
		return e.Path
	}
	return e.Method + " " + e.Path
}
