package httpcall

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/interlock-go/interlock/core/ruleset"
)

// WriteRoutes writes what rules may refer to in a program, as JSON: routes as they are
// registered, the variables, and the fallbacks. It is what `interlock check --routes`
// reads, to judge a rule file without the program:
//
//	{
//	  "routes": [
//	    {"method": "POST", "path": "/orders/:id/pay", "body": {"amount": "integer"}}
//	  ],
//	  "variables": {"user": "string", "principal": {"Tenant": "string"}},
//	  "fallbacks": ["queue"]
//	}
//
// body is there only where [Config.Body] gives the route a type, its fields by their JSON
// names; the fields of variables have their Go names. A type is "string", "integer",
// "number", "boolean", a list [type] of one element, an object {"field": type}, or "any"
// where nothing can be told before a request: interfaces, maps, and what a type contains
// of itself. What is empty is left out.
//
// The output depends on nothing but the program: routes are sorted by path and method,
// names by the alphabet.
func (c *Config) WriteRoutes(w io.Writer, routes []ruleset.Endpoint, fallbacks []string) error {
	program := description{Routes: []describedRoute{}, Variables: c.described, Fallbacks: slices.Sorted(slices.Values(fallbacks))}
	for _, e := range slices.SortedFunc(slices.Values(routes), byPath) {
		r := describedRoute{Method: e.Method, Path: e.Path}
		if body := c.bodies[c.canonical(e)]; body != nil {
			r.Body = describeType(body, jsonFields)
		}
		program.Routes = append(program.Routes, r)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(program)
}

// description is a program as tools see it.
type description struct {
	Routes    []describedRoute `json:"routes"`
	Variables map[string]any   `json:"variables,omitempty"`
	Fallbacks []string         `json:"fallbacks,omitempty"`
}

type describedRoute struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   any    `json:"body,omitempty"`
}
