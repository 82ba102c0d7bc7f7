package ruleset

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

// Transport is the transport of an [Endpoint].
type Transport string

// The transports.
const (
	TransportHTTP Transport = "http"
	TransportGRPC Transport = "grpc"
	TransportFunc Transport = "func"
)

// Endpoint is the place where rules apply. It is a comparable value, and building one from its parts
// does not allocate.
//
// A `*` stands for any method, and at the end of a path for everything below it.
// If several endpoints with rules match a call, only the rules of the most
// exact one apply. An exact path comes before a longer `/*` prefix, which comes before a shorter
// one. Among equal paths, an exact method comes before `*`. Wildcards do not match
// [Endpoint.Infrastructure] and CORS preflights.
type Endpoint struct {
	Transport Transport
	Method    string // the HTTP method, "POST" or "*"; empty for other transports
	Path      string // "/orders/:id/pay", "/pkg.Service/Method", a function's name, or "*"
}

// HTTP returns an HTTP endpoint for a method and a route as it was registered, such as
// "POST /orders/:id/pay". Wildcards: "* /orders/:id", "POST /api/*", "*". HTTP does
// not fail; [NewSet] reports a malformed route.
func HTTP(route string) Endpoint {
	if route == "*" {
		return Endpoint{TransportHTTP, "*", "*"}
	}
	method, path, _ := strings.Cut(strings.TrimSpace(route), " ")
	return Endpoint{TransportHTTP, method, strings.TrimLeft(path, " ")}
}

// Route returns the HTTP endpoint of a method and a registered route. It does not
// allocate.
func Route(method, path string) Endpoint { return Endpoint{TransportHTTP, method, path} }

// GRPC returns the gRPC endpoint of a full method, "/pkg.Service/Method". Wildcards:
// "/pkg.Service/*", "*". It ignores blanks around the method. It does not allocate.
func GRPC(fullMethod string) Endpoint {
	return Endpoint{TransportGRPC, "", strings.TrimSpace(fullMethod)}
}

// Func returns the endpoint of a function. Metrics show its rule under this name.
// Func ignores blanks around the name.
func Func(name string) Endpoint { return Endpoint{TransportFunc, "", strings.TrimSpace(name)} }

// Infrastructure reports whether the endpoint is a method for operating a server: health
// checking, reflection, channelz, service listing of kratos, client status discovery or load
// reporting, whichever library serves it. A rule for everything does not match such a method. A rule that names the method or
// its service does.
func (e Endpoint) Infrastructure() bool {
	for _, prefix := range [...]string{"/grpc.health.", "/grpc.reflection.", "/grpc.channelz.", "/kratos.api.", "/envoy.service.status.", "/xds.service.orca."} {
		if strings.HasPrefix(e.Path, prefix) {
			return true
		}
	}
	return false
}

// IsZero reports whether e is the zero Endpoint.
func (e Endpoint) IsZero() bool { return e == Endpoint{} }

// String returns the endpoint as in a declaration, such as "http POST /orders/:id/pay".
func (e Endpoint) String() string {
	if e.IsZero() {
		return ""
	}
	return string(e.Transport) + " " + e.Label()
}

// Label returns the endpoint without its transport. It is the default name of a rule.
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

// examples holds the examples in messages for a transport: an endpoint, a key, and a key in a list of
// keys.
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

// endpointMissing is the message for a rule of a file.
const endpointMissing = "no endpoint: write http: POST /orders/:id/pay, grpc: /shop.Orders/Pay or func: close-day"

// problem returns the message for a malformed endpoint, or "" for a valid one. It spells examples for a
// file or for Go.
func (e Endpoint) problem(inFile bool) string {
	switch {
	case hasPlaceholder(e.Label()):
		return fmt.Sprintf("%q is not a place in the program: write it as it is registered, such as %q, and put #{…} into the key", e.Label(), e.examples().endpoint)
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

// hasLayers reports whether rules for the endpoint may be declared outside of a set.
func (e Endpoint) hasLayers() bool { return e.Transport != TransportHTTP }

// isWild reports whether the path is a wildcard.
func (e Endpoint) isWild() bool { return e.Path == "*" || strings.HasSuffix(e.Path, "/*") }

// mayHaveLower reports whether lower layers, outside of a set, may declare rules for exactly
// this endpoint.
func (e Endpoint) mayHaveLower() bool { return e.hasLayers() && !e.isWild() }

func (e Endpoint) httpProblem() string {
	text := strings.TrimSpace(e.Label())
	method, path := meantMethod(e.Method), meantPath(e.Path)
	switch {
	case e.Path == "" && strings.HasPrefix(e.Method, "/"):
		return fmt.Sprintf("%q has no method: write %q", text, "POST "+oneStar(e.Method))
	case e.Path == "" || e.Method == "":
		return fmt.Sprintf("%q is not a route: write a method and a path such as %q", text, e.examples().endpoint)
	case strings.HasPrefix(e.Method, "/"):
		return fmt.Sprintf("%q: the method comes first: write %q", text, strings.ToUpper(e.Path)+" "+e.Method)
	case strings.ContainsAny(e.Method, ",|/+"):
		return fmt.Sprintf("%q: a rule has one method, or * for any: write a rule for each method", text)
	case strings.ContainsAny(e.Path, " \t"):
		return fmt.Sprintf("%q: a path has no spaces: write a method and a path such as %q", text, e.examples().endpoint)
	case slices.Contains([]string{"ANY", "ALL"}, strings.ToUpper(e.Method)) && strings.HasPrefix(e.Path, "/"):
		return fmt.Sprintf("%q: a * stands for any method: write %q", text, "* "+oneStar(e.Path))
	case method == "":
		return fmt.Sprintf("%q: %+q is not a method: write one such as POST, in capitals, or * for any", text, e.Method)
	case method != e.Method && strings.EqualFold(method, e.Method):
		return fmt.Sprintf("%q: methods are upper case: write %q", text, method+" "+path)
	case method != e.Method:
		return fmt.Sprintf("%q: %+q is not a known method: write %q", text, e.Method, method+" "+path)
	case e.Path == "*":
		return ""
	case strings.Contains(e.Path, "://"):
		return fmt.Sprintf("%q: a route has no scheme and no host: write %q", text, method+" "+path)
	case e.Path[0] != '/':
		return fmt.Sprintf("%q: a path begins with a slash: write %q", text, method+" "+path)
	}
	return starProblem(text, e)
}

// meantMethod returns method itself if it may be valid: *, or a word in capitals that does not resemble a
// known method. Otherwise it returns the method that was probably meant, or "" if that is unclear.
func meantMethod(method string) string {
	upper := strings.ToUpper(method)
	known := []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
	}
	if method == "*" || slices.Contains(known, upper) {
		return upper
	}
	if near := failpolicy.Nearest(upper, known); near != "" {
		return near
	}
	if strings.Trim(upper, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return upper
	}
	return ""
}

// meantPath returns the path with a leading slash. For a URL such as
// https://example.org/orders?page=1, it returns only the path.
func meantPath(path string) string {
	if address, err := url.Parse(path); err == nil && address.Host != "" {
		path = address.Path
	}
	if path == "*" || strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}

// oneStar returns a path with one star in place of the two stars of other libraries.
func oneStar(path string) string {
	if before, _, found := strings.Cut(path+"/", "/**/"); found {
		return before + "/*"
	}
	return path
}

// starProblem returns the message for a * that is not at the end or does not follow a slash, and for more
// than one *. It accepts gin's "/*name".
func starProblem(text string, e Endpoint) string {
	at := strings.IndexByte(e.Path, '*')
	if at < 0 {
		return ""
	}
	before, rest := strings.TrimSuffix(e.Path[:at], "/"), e.Path[at+1:]
	meant := e.Method + " " + before + "/*"
	switch {
	case e.Path[at-1] != '/':
		return fmt.Sprintf("%q: a * stands for everything below a slash: write %q", text, meant)
	case rest == "*" || strings.HasPrefix(rest, "*/"):
		return fmt.Sprintf("%q: one * stands for everything below: write %q", text, meant)
	case strings.ContainsAny(rest, "/*"):
		return fmt.Sprintf("%q: a * stands only at the end: write %q", text, meant)
	}
	return ""
}

func (e Endpoint) grpcProblem() string {
	path := e.Path
	service, method, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case path == "*":
		return ""
	case path == "/*", service == "*" && (method == "*" || method == "**"):
		return fmt.Sprintf("%q: a * alone stands for every method: write \"*\"", path)
	case strings.ContainsAny(strings.TrimSpace(path), " \t"):
		return fmt.Sprintf("%q: a full method has no spaces: write one such as %q", path, e.examples().endpoint)
	case path != strings.TrimSpace(path):
		return fmt.Sprintf("%q has blanks around it: write %q", path, strings.TrimSpace(path))
	case !ok && strings.Count(path, ".") > 1 && path[0] != '/':
		cut := strings.LastIndexByte(path, '.')
		return fmt.Sprintf("%q is not a full method: write %q", path, "/"+path[:cut]+"/"+path[cut+1:])
	case !ok || service == "" || method == "" || strings.Contains(method, "/"):
		return fmt.Sprintf("%q is not a full method: write one such as %q", path, e.examples().endpoint)
	case strings.Contains(service, "*"):
		return fmt.Sprintf("%q: a * stands for the methods of one service, as in \"/shop.Orders/*\", or alone for every method: write one of these", path)
	case method == "**":
		return fmt.Sprintf("%q: one * stands for everything below: write %q", path, "/"+service+"/*")
	case method != "*" && strings.Contains(method, "*"):
		return fmt.Sprintf("%q: a * stands for whole names: write %q", path, "/"+service+"/*")
	case path[0] != '/':
		return fmt.Sprintf("%q: a full method begins with a slash: write %q", path, "/"+path)
	}
	return ""
}
