// Package routes reads the HTTP routes of a program from its routes file or takes them from rules. It
// serves a request with them, as the program would.
//
// It depends on the routers of gin and net/http and on the form of a routes file. It does not depend on
// locks or keys: its caller supplies the guards. The commands check and key call it.
package routes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/input"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Route is an HTTP route as it was registered.
type Route struct {
	Method string       `json:"method"`
	Path   string       `json:"path"`
	Body   *shape.Shape `json:"body"` // nil if the program does not declare the type
}

// Endpoint returns the route as rules name it: without the backslashes that escape colons.
func (r Route) Endpoint() ruleset.Endpoint {
	return ruleset.Route(r.Method, strings.ReplaceAll(r.Path, `\:`, ":"))
}

// Table is the content of a routes file.
type Table struct {
	Routes    []Route                `json:"routes"`
	Variables map[string]shape.Shape `json:"variables"` // the registered variables
	Fallbacks []string               `json:"fallbacks"` // the names of the fallback handlers
}

// Load reads the file that WriteRoutes of a guard writes.
func Load(path string) (*Table, error) {
	text, err := input.File(path, input.Document)
	if err != nil {
		return nil, err
	}
	t := &Table{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(t)
	switch {
	case err != nil:
	case d.More():
		err = errors.New("the file goes on after the first value")
	case t.Routes == nil:
		err = errors.New(`"routes" is missing`)
	default:
		_, err = t.At(httpvars.Config{}, nil) // the names of variables
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not a routes file of Guard.WriteRoutes (ginlock or httplock): %w", path, err)
	}
	for i, r := range t.Routes {
		if r.Method == "" || r.Path == "" {
			return nil, fmt.Errorf(`%s: route %d has no method or no path: write {"method": "POST", "path": "/orders/:id"}`, path, i+1)
		}
	}
	return t, nil
}

// At returns the schema of expressions at a route: the variables of a config and the variables that the program
// registers. c.Registered may contain further variables. body is the shape of the route's body, or nil if it is
// not known.
func (t *Table) At(c httpvars.Config, body *shape.Shape) (*keyexpr.Schema, error) {
	for _, name := range t.Registered() {
		typ := t.Variables[name]
		c.Registered = append(c.Registered, keyexpr.Variable{Name: name, Type: typ.Type("the variable " + name)})
	}
	if body != nil {
		typ := body.Type("the body")
		c.BodyType = &typ
	}
	v, err := httpvars.New(c)
	if err != nil {
		return nil, err
	}
	return v.Schema(), nil
}

// Variable returns the type of a variable of the program, or nil if the program does not have it.
func (t *Table) Variable(name string) *shape.Shape {
	if t == nil {
		return nil
	}
	typ, ok := t.Variables[name]
	if !ok {
		return nil
	}
	return &typ
}

// Registered returns the names of the program's variables, sorted.
func (t *Table) Registered() []string {
	if t == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.Variables))
}
