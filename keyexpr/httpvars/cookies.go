package httpvars

import "net/http"

// cookies are those of a request. One is looked for in the header; from the second
// time on all of them are kept, so that their number and that of the questions do not
// multiply.
type cookies struct {
	asked  bool
	byName map[string][]*http.Cookie
}

func (c *cookies) named(r *http.Request, name string) []*http.Cookie {
	if !c.asked {
		c.asked = true
		return r.CookiesNamed(name)
	}
	if c.byName == nil {
		c.byName = map[string][]*http.Cookie{}
		for _, cookie := range r.Cookies() {
			c.byName[cookie.Name] = append(c.byName[cookie.Name], cookie)
		}
	}
	return c.byName[name]
}

func (q *Request) cookie(name string, i int) (string, int, error) {
	named := q.cookies.named(q.request, name)
	if i >= len(named) {
		return "", len(named), nil
	}
	value := named[i].Value
	if decode := q.variables.cookieValue; decode != nil {
		value = decode(value)
	}
	return value, len(named), nil
}
