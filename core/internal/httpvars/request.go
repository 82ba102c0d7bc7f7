package httpvars

import (
	"cmp"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/interlock-go/interlock/keyexpr"
)

// Request is the [keyexpr.Env] of one HTTP request.
type Request struct {
	variables *Variables
	request   *http.Request
	host      Host
	method    string // the method of the route; "" for the method of the request

	query      *named
	cookies    *named // the values are those that handlers see
	payload    payload
	form       result[*named]
	document   result[any]
	registered []result[any]
}

var _ keyexpr.Env = (*Request)(nil)

// Request returns the values of one request. One goroutine uses them at a time. Any number of
// templates may use them, and each variable is computed once. Reading the body replaces the Body
// of r itself, so callers copy r with [http.Request.WithContext] only after that.
func (v *Variables) Request(r *http.Request, host Host) *Request {
	return &Request{variables: v, request: r, host: host, payload: payload{request: r, limit: v.maxBody}}
}

// Matched sets the variable method to the method of the route that the router matched. A layer
// between the router and the handler may have replaced the method of the request with a method
// chosen by the client.
func (q *Request) Matched(method string) { q.method = method }

// KeptBody declares that a middleware read the body earlier and keeps its bytes where handlers
// may read them again, as gin's ShouldBindBodyWith does. Call it before an expression reads a
// value. Nil means that no middleware keeps a body.
//
// If nothing is left of the request's Body, the request gets the kept bytes again. If a
// middleware puts other bytes into Body, Body keeps them. Then expressions over the body fail
// with [keyexpr.ReasonInternal], because a handler may read either.
func (q *Request) KeptBody(content []byte) { q.payload.kept = content }

// Buffer reads the body into memory, up to the limit, and replaces the Body of the request with a
// body of the same bytes. Its error is a *[keyexpr.EvalError]; even then the handler can read the
// whole body. Buffer does not read a body whose ContentLength exceeds the limit.
func (q *Request) Buffer() error {
	_, err := q.payload.bytes()
	return err
}

// Body returns the bytes of the body. It returns false if the body was not read or exceeds the
// limit. The caller must not change the slice.
func (q *Request) Body() ([]byte, bool) {
	return q.payload.read.value, q.payload.read.done && q.payload.read.err == nil
}

// Value implements [keyexpr.Env].
func (q *Request) Value(slot int) (any, error) {
	switch slot {
	case slotBody:
		return q.document.once(func() (any, error) { return decodeBody(&q.payload, q.variables.body) })
	case slotMethod:
		return cmp.Or(q.method, q.request.Method), nil
	case slotRoute:
		return q.host.Route(), nil
	case slotClientIP:
		return q.host.ClientIP(), nil
	}
	return q.registeredValue(slot - standardSlots)
}

func (q *Request) registeredValue(i int) (any, error) {
	if q.registered == nil {
		q.registered = make([]result[any], q.variables.registered)
	}
	return q.registered[i].once(func() (any, error) { return q.host.Registered(i) })
}

// Items implements [keyexpr.Env].
func (q *Request) Items(slot int, key string) ([]string, error) {
	switch slot {
	case slotPath:
		return []string{q.host.PathValue(key)}, nil
	case slotQuery:
		return q.parsedQuery().get(key)
	case slotHeader:
		if key == "Host" { // net/http removes it from the header
			return []string{q.request.Host}, nil
		}
		return q.request.Header[key], nil
	case slotCookie:
		if q.cookies == nil {
			q.cookies = q.parseCookies()
		}
		return q.cookies.get(key)
	case slotForm:
		return q.formItems(key)
	}
	return nil, nil
}

func (q *Request) parsedQuery() *named {
	if q.query == nil {
		q.query = newNamed(q.request.URL.Query())
	}
	return q.query
}

// formItems returns the values of a form field. It returns an error if the query has the name,
// too: many handlers merge the two, and some of these read the query first.
func (q *Request) formItems(key string) ([]string, error) {
	if q.parsedQuery().has(key) {
		return nil, &keyexpr.EvalError{Reason: keyexpr.ReasonRepeated, Detail: "is also given in the query, which some handlers read instead"}
	}
	form, err := q.form.once(func() (*named, error) {
		values, err := decodeForm(&q.payload)
		return newNamed(values), err
	})
	if err != nil {
		return nil, err
	}
	return form.get(key)
}

// parseCookies parses all cookies at once, so that the cost does not grow with the number of
// cookies times the number of lookups.
func (q *Request) parseCookies() *named {
	cookies := map[string][]string{}
	for _, cookie := range q.request.Cookies() {
		value := cookie.Value
		if decode := q.variables.cookieValue; decode != nil {
			value = decode(value)
		}
		cookies[cookie.Name] = append(cookies[cookie.Name], value)
	}
	named := newNamed(cookies)
	for name, sent := range q.cookieNames() {
		if sent != len(cookies[name]) { // net/http drops malformed cookies; other parsers read them
			named.addUnread(name)
		}
	}
	return named
}

// cookieNames returns the names in the header and how often each occurs.
func (q *Request) cookieNames() map[string]int {
	names := map[string]int{}
	for _, line := range q.request.Header["Cookie"] {
		for part := range strings.SplitSeq(line, ";") {
			if name, _, _ := strings.Cut(part, "="); strings.TrimSpace(part) != "" {
				names[textproto.TrimString(name)]++
			}
		}
	}
	return names
}
