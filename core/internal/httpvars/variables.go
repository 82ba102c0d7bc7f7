package httpvars

import (
	"cmp"
	"net/http"
	"net/textproto"
	"reflect"
	"strings"

	"github.com/interlock-go/interlock/keyexpr"
)

// The slots of the standard variables; registered ones follow.
const (
	slotPath = iota
	slotQuery
	slotHeader
	slotCookie
	slotForm
	slotBody
	slotMethod
	slotRoute
	slotClientIP
	standardSlots
)

// Variables is a checked [Config]. It is immutable and safe for concurrent use.
type Variables struct {
	schema      *keyexpr.Schema
	body        reflect.Type
	maxBody     int64
	cookieValue func(raw string) string // nil leaves it
	registered  int                     // how many there are
}

// New checks a config. Bad names, clashes with the standard variables and
// unusable types are errors, all of them joined.
func New(c Config) (*Variables, error) {
	v := &Variables{body: c.Body, maxBody: cmp.Or(c.MaxBody, DefaultMaxBody), cookieValue: c.CookieValue, registered: len(c.Registered)}
	variables := standard(&c)
	for _, r := range c.Registered {
		r.Registered = true
		variables = append(variables, r)
	}
	var err error
	v.schema, err = keyexpr.NewSchema(variables...)
	return v, err
}

func standard(c *Config) []keyexpr.Variable {
	body := keyexpr.JSONType(c.Body)
	if c.BodyType != nil {
		body = *c.BodyType
	}
	named := func(noun string) *keyexpr.Keyed {
		return &keyexpr.Keyed{Noun: noun, Open: true, Repeatable: true}
	}
	header := named("header")
	header.Canonical, header.Caseless = textproto.CanonicalMIMEHeaderKey, "Host"
	variables := [standardSlots]keyexpr.Variable{
		slotPath:     {Name: "path", Keyed: &keyexpr.Keyed{Noun: "path parameter", Known: c.PathParams, Open: c.AnyPathParam}},
		slotQuery:    {Name: "query", Keyed: named("query parameter")},
		slotHeader:   {Name: "header", Keyed: header},
		slotCookie:   {Name: "cookie", Keyed: named("cookie")},
		slotForm:     {Name: "form", Keyed: named("form field")},
		slotBody:     {Name: "body", Type: body},
		slotMethod:   {Name: "method", Type: keyexpr.TextType("a method", oneMethod)},
		slotRoute:    {Name: "route", Type: keyexpr.TypeFor[string]()},
		slotClientIP: {Name: "client_ip", Type: keyexpr.AddressType()},
	}
	return variables[:]
}

// oneMethod returns a method in upper case, as all methods that net/http names are.
func oneMethod(text string) (string, bool) {
	return strings.ToUpper(text), text != ""
}

// Schema returns the schema to compile templates against.
func (v *Variables) Schema() *keyexpr.Schema { return v.schema }

// Request returns the values of one request. One goroutine uses it at a time;
// it serves any number of templates and computes each variable once. The Body of
// r itself is replaced when it has been read, so a copy made by
// [http.Request.WithContext] has to be made afterwards.
func (v *Variables) Request(r *http.Request, host Host) *Request {
	return &Request{variables: v, request: r, host: host}
}
