package ginlock

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// WriteRoutes writes what rules may refer to in this program, as JSON: the routes
// of an engine, and the variables and fallbacks of the guard. It is what
// `interlock check --routes` reads, to judge a rule file without the program:
//
//	{
//	  "routes": [
//	    {"method": "POST", "path": "/orders/:id/pay", "body": {"amount": "integer"}}
//	  ],
//	  "variables": {"user": "string", "principal": {"Tenant": "string"}},
//	  "fallbacks": ["queue"]
//	}
//
// A path is as it was registered: \: is a colon that begins no parameter. body is
// there only where [WithBody] gives the route a type, its fields by their JSON names;
// the fields of variables have their Go names. A type is "string", "integer",
// "number", "boolean", a list [type] of one element, an object {"field": type}, or
// "any" where nothing can be told before a request: interfaces, maps, and what a
// type contains of itself. What is empty is left out.
//
// The output depends on nothing but the program: routes are sorted by path and
// method, names by the alphabet.
func (g *Guard) WriteRoutes(w io.Writer, engine *gin.Engine) error {
	if engine == nil {
		return errors.New("ginlock: WriteRoutes: the engine is nil")
	}
	program := description{
		Routes:    g.describeRoutes(engine),
		Variables: make(map[string]any, len(g.cfg.variables)),
		Fallbacks: slices.Sorted(maps.Keys(g.cfg.fallbacks)),
	}
	for _, v := range g.cfg.variables {
		program.Variables[v.name] = describeType(v.typ, goFields)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(program); err != nil {
		return fmt.Errorf("ginlock: WriteRoutes: %w", err)
	}
	return nil
}

// description is a program as tools see it; see [Guard.WriteRoutes].
type description struct {
	Routes    []routeDescription `json:"routes"`
	Variables map[string]any     `json:"variables,omitempty"`
	Fallbacks []string           `json:"fallbacks,omitempty"`
}

type routeDescription struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   any    `json:"body,omitempty"`
}

func (g *Guard) describeRoutes(engine *gin.Engine) []routeDescription {
	routes := []routeDescription{}
	for _, info := range engine.Routes() {
		r := routeDescription{Method: info.Method, Path: info.Path}
		if body := g.cfg.bodies[canonical(ruleset.Route(info.Method, info.Path))]; body != nil {
			r.Body = describeType(body, jsonFields)
		}
		routes = append(routes, r)
	}
	slices.SortFunc(routes, func(a, b routeDescription) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return routes
}
