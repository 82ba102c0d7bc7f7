// Package httpvars offers the variables of an HTTP request to key expressions.
// It needs net/http only; routers supply what they alone know through [Host].
//
//	path.id          a parameter of the route, as the router decoded it
//	query.id         a query parameter
//	header["X-Id"]   a header; the case of the name does not matter
//	cookie.session   a cookie
//	form.id          a field of a urlencoded or multipart body; see below
//	body.user.id     the JSON body, untyped or of [Config.Body]
//	method           GET, POST, …: of the route, where its pattern has one
//	route            the route's pattern
//	client_ip        the client's address, as the router determines it, in the one form of
//	                 netip.Addr; see below
//
// and the registered ones of [Config.Registered].
//
// A query, header, cookie or form value that a request repeats is an error:
// query.id[0] picks one, query.id[:] takes all of them.
//
// Values are decoded once: %34%32, + for a blank and the quotes of a cookie make no other
// key. header.Host is in lower case, with its port. A handler's own parser may take several
// texts for one value (true, TRUE and 1; 42 and 042; a UUID in two cases). These are different
// keys: write lower(query.id) or int(query.id), or give the body a type.
//
// form is what a handler finds in PostForm when net/http, or gin's PostForm, has
// parsed the form: the values of a urlencoded body under POST, PUT and PATCH only, and
// of a multipart body under any method. A urlencoded body of a GET or DELETE has none,
// and is not read. A form that a middleware has parsed before is the one that counts.
// form never has the query. A handler that merges the two (http.Request.Form and
// FormValue, gin's ShouldBind, which under GET reads the query only) may get a value
// that form does not have: let it read PostForm where a condition or a ?? depends on
// form.
//
// client_ip is as trustworthy as what the router takes it from. Gin's default is to
// trust every proxy: any client then chooses its address by a header, and with it the
// lock. Engine.SetTrustedProxies names the proxies that there are.
//
// A body is read only if an expression uses it, at most [Config.MaxBody] bytes
// of it, and the request's Body is replaced so that the handler still reads all
// of it. A body is there if it has bytes, whatever length was announced. JSON needs a
// JSON content type (application/json or any +json), UTF-8 and nothing after the
// value. A body that has a name twice in one object, be it in another
// case, is refused, typed or not, because handlers disagree about which value counts.
// A request without a body has no value for body and form.
//
// A typed body is decoded as encoding/json would do it for the handler: a time.Time in it is
// its instant in UTC, whatever its zone. Of an untyped
// one an expression sees what a handler sees that decodes it with encoding/json into a
// struct, or the request is refused:
//
//   - The case of names does not matter, whatever the expression does with an object:
//     body.id, "id" in body and (body.order ?? body).id find ID. (Only a handler with two
//     fields that differ in nothing else tells them apart.) keys gives names that are in lower
//     case, or that the expression itself spells so somewhere; others are refused.
//   - Objects are not compared, by == or in: compare their fields.
//   - The number 42 and the string "42" are one id, whose text is the key. Comparing the
//     one with the other is refused: write string(body.id) == path.id.
//   - 5.0, 5e0 and -0 are numbers, but no ids.
//
// A handler that decodes an id into a float64, or into any without UseNumber, takes 2^53
// and 2^53 + 1 for one id, which have two keys. One whose field has the option ,string
// takes "042" and "42" for one. Neither loses anything that the key does not where
// [Config.Body] (ginlock.WithBody) is the type of the handler, with an int64 or a string
// in the place of the float64.
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
	// MaxBody is the largest body in bytes; 0 is [DefaultMaxBody].
	MaxBody int64
	// CookieValue is what handlers see of a cookie's value, for routers that decode
	// it: a client could otherwise spell one value in several ways. Nil leaves it as
	// [net/http.Cookie] has it.
	CookieValue func(raw string) string
	// Registered are the application's own variables.
	Registered []Registered
}

// Registered declares a variable that the application computes from the request.
type Registered = keyexpr.Registered

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
// client's address is that of the connection. It has no registered variables.
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
