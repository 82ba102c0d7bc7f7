package httpvars

import (
	"cmp"
	"net/textproto"
	"reflect"
	"strings"

	"github.com/interlock-go/interlock/keyexpr"
)

// The slots of the standard variables. The slots of the registered variables follow.
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
	cookieValue func(raw string) string // see Config.CookieValue
	registered  int                     // the number of registered variables
}

// New checks a config. Its error joins one error for each invalid name, each clash with a standard
// variable, and each type that expressions cannot use.
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
		slotMethod:   {Name: "method", Type: keyexpr.TextType("a method", canonicalMethod)},
		slotRoute:    {Name: "route", Type: keyexpr.TypeFor[string]()},
		slotClientIP: {Name: "client_ip", Type: keyexpr.AddressType()},
	}
	return variables[:]
}

// canonicalMethod returns a method in upper case, like the constants of net/http.
func canonicalMethod(text string) (string, bool) {
	return strings.ToUpper(text), text != ""
}

// Schema returns the schema to compile templates against.
func (v *Variables) Schema() *keyexpr.Schema { return v.schema }
