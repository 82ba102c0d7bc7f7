package httpvars

import (
	"net/http"
	"net/url"

	"github.com/interlock-go/interlock/keyexpr"
)

// Request is the [keyexpr.Env] of one HTTP request.
type Request struct {
	variables *Variables
	request   *http.Request
	host      Host

	query      url.Values
	cookies    cookies
	kept       []byte // of a body that was read before; see KeptBody
	payload    payload
	form       result[url.Values]
	body       result[any]
	registered map[int]result[any]
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

// Value implements [keyexpr.Env].
func (q *Request) Value(slot int) (any, error) {
	switch slot {
	case slotBody:
		return q.body.once(q.decodeBody)
	case slotMethod:
		return q.request.Method, nil
	case slotRoute:
		return q.host.Route(), nil
	case slotClientIP:
		return q.host.ClientIP(), nil
	}
	return q.registeredValue(slot - standardSlots)
}

func (q *Request) registeredValue(i int) (any, error) {
	r := q.registered[i]
	if r.done {
		return r.value, r.err
	}
	value, err := r.once(func() (any, error) { return q.host.Registered(i) })
	if q.registered == nil {
		q.registered = make(map[int]result[any])
	}
	q.registered[i] = r
	return value, err
}

// Item implements [keyexpr.Env].
func (q *Request) Item(slot int, key string, i int) (string, int, error) {
	switch slot {
	case slotPath:
		return single(q.host.PathValue(key))
	case slotQuery:
		if q.query == nil {
			q.query = q.request.URL.Query()
		}
		return pick(q.query[key], i)
	case slotHeader:
		if key == "Host" { // net/http keeps it apart
			return single(q.request.Host)
		}
		return pick(q.request.Header[key], i)
	case slotCookie:
		return q.cookie(key, i)
	case slotForm:
		form, err := q.form.once(q.parseForm)
		if err != nil {
			return "", 0, err
		}
		return pick(form[key], i)
	}
	return "", 0, nil
}

func single(value string) (string, int, error) { return value, 1, nil }

func pick(values []string, i int) (string, int, error) {
	if i >= len(values) {
		return "", len(values), nil
	}
	return values[i], len(values), nil
}

var _ keyexpr.Env = (*Request)(nil)
