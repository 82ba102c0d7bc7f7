package ruleset

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

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
// one, and then an exact method before `*`. Wildcards leave [Endpoint.Infrastructure]
// and CORS preflights alone.
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
// "/pkg.Service/*", "*". Blanks around it are none of it. It does not allocate.
func GRPC(fullMethod string) Endpoint {
	return Endpoint{TransportGRPC, "", strings.TrimSpace(fullMethod)}
}

// Func is a function, under the name that its rule is to have in metrics.
// Blanks around the name are none of it.
func Func(name string) Endpoint { return Endpoint{TransportFunc, "", strings.TrimSpace(name)} }

// Infrastructure reports whether the endpoint is a method for operating a server: health
// checking, reflection, channelz, client status discovery and load reporting, whichever library
// serves them. A rule for everything leaves it alone; a rule that names the method or its service
// does not.
func (e Endpoint) Infrastructure() bool {
	for _, prefix := range [...]string{"/grpc.health.", "/grpc.reflection.", "/grpc.channelz.", "/envoy.service.status.", "/xds.service.orca."} {
		if strings.HasPrefix(e.Path, prefix) {
			return true
		}
	}
	return false
}

// IsZero reports whether no endpoint was given.
func (e Endpoint) IsZero() bool { return e == Endpoint{} }

// String is the endpoint as in a declaration, such as "http POST /orders/:id/pay".
func (e Endpoint) String() string {
	if e.IsZero() {
		return ""
	}
	return string(e.Transport) + " " + e.Label()
}

// MarshalText is [Endpoint.String].
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Label is the endpoint without its transport: the default name of its rule.
func (e Endpoint) Label() string {
	switch {
	case e.Method == "" || e.Method == e.Path:
		return e.Path
	case e.Path == "":
		return e.Method
	default:
		return e.Method + " " + e.Path
	}
}

// examples are what to write, in messages, for the endpoints of a transport: an endpoint, a
// key, and a key beside others.
type examples struct{ endpoint, key, keys string }

func (e Endpoint) examples() examples {
	switch e.Transport {
	case TransportGRPC:
		return examples{"/shop.Orders/Pay", "order:pay:#{req.order_id}", "stock:#{req.sku}"}
	case TransportFunc:
		return examples{"close-day", "order:pay:#{in.OrderID}", "stock:#{in.SKU}"}
	default:
		return examples{"POST /orders/:id/pay", "order:pay:#{path.id}", "stock:#{path.sku}"}
	}
}

// endpointMissing is for the rules of a file.
const endpointMissing = "no endpoint: write http: POST /orders/:id/pay, grpc: /shop.Orders/Pay or func: close-day"

// problem says what is malformed and what to write, there or in a file; "" if nothing
// is.
func (e Endpoint) problem(inFile bool) string {
	switch {
	case hasPlaceholder(e.Label()):
		return fmt.Sprintf("%q is no place in the program: write it as it is registered, such as %q, and put #{…} into the key", e.Label(), e.examples().endpoint)
	case e.Transport == TransportHTTP:
		return e.httpProblem()
	case e.Transport == TransportGRPC:
		return e.grpcProblem()
	case e.Transport == TransportFunc && e != Func(e.Path):
		return fmt.Sprintf("%q has blanks around it: write %q", e.Path, strings.TrimSpace(e.Path))
	case e.Transport == TransportFunc && len(e.Path) > strictyaml.MaxWord:
		return fmt.Sprintf("%d bytes long: write %d at most", len(e.Path), strictyaml.MaxWord)
	case e.Transport == TransportFunc && strings.ContainsFunc(e.Path, unicode.IsControl):
		return fmt.Sprintf("%q has line breaks or control characters: write one line without them", e.Path)
	case e.Transport == TransportFunc && e.Path != "":
		return ""
	case e.Transport == TransportFunc && inFile:
		return "a function needs a name: write func: close-day"
	case e.Transport == TransportFunc:
		return `a function needs a name: write Func("close-day")`
	default:
		return wordsOf("transport", []Transport{TransportHTTP, TransportGRPC, TransportFunc}).check(string(e.Transport)).Error()
	}
}

// hasLayers reports whether rules may be declared for the endpoint outside of a set.
func (e Endpoint) hasLayers() bool { return e.Transport != TransportHTTP }

// isWild reports whether the path is a wildcard.
func (e Endpoint) isWild() bool { return e.Path == "*" || strings.HasSuffix(e.Path, "/*") }

// mayHaveLower reports whether lower layers, outside of a set, may declare rules for exactly
// this endpoint.
func (e Endpoint) mayHaveLower() bool { return e.hasLayers() && !e.isWild() }
