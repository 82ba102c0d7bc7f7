package httpvars

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/interlock-go/interlock/keyexpr"
)

// Request is the [keyexpr.Env] of one HTTP request.
type Request struct {
	variables *Variables
	request   *http.Request
	host      Host
	method    string // of the route, "" for the request's

	query      url.Values
	cookies    map[string][]string // as handlers see them
	kept       []byte              // of a body that was read before; see KeptBody
	payload    result[[]byte]      // the body after it has been read
	form       result[url.Values]
	body       result[any]
	registered []result[any]
}

// result is what a variable was computed to be.
type result[T any] struct {
	done  bool
	value T
	err   error
}

// once computes a result unless it is there.
func (r *result[T]) once(compute func() (T, error)) (T, error) {
	if !r.done {
		r.value, r.err = compute()
		r.done = true
	}
	return r.value, r.err
}

// Matched makes the variable method the method of the route that the router has matched. A layer in
// between may have changed the method of the request, to whatever its client wished.
func (q *Request) Matched(method string) { q.method = method }

// Value implements [keyexpr.Env].
func (q *Request) Value(slot int) (any, error) {
	switch slot {
	case slotBody:
		return q.body.once(q.decodeBody)
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
		if q.query == nil {
			q.query = q.request.URL.Query()
		}
		return q.query[key], nil
	case slotHeader:
		if key == "Host" { // net/http keeps it apart
			return []string{q.request.Host}, nil
		}
		return q.request.Header[key], nil
	case slotCookie:
		if q.cookies == nil {
			q.cookies = q.parseCookies()
		}
		return q.cookies[key], nil
	case slotForm:
		form, err := q.form.once(q.parseForm)
		return form[key], err
	}
	return nil, nil
}

// parseCookies reads the header once, so that the number of cookies and that of the
// questions do not multiply.
func (q *Request) parseCookies() map[string][]string {
	cookies := map[string][]string{}
	for _, cookie := range q.request.Cookies() {
		value := cookie.Value
		if decode := q.variables.cookieValue; decode != nil {
			value = decode(value)
		}
		cookies[cookie.Name] = append(cookies[cookie.Name], value)
	}
	return cookies
}

var _ keyexpr.Env = (*Request)(nil)
