// Package routes knows the HTTP routes of a program: from the file that the program
// writes about itself, or from what rules say.
package routes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/bounded"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Route is an HTTP route as it was registered.
type Route struct {
	Method string       `json:"method"`
	Path   string       `json:"path"`
	Body   *shape.Shape `json:"body"` // nil if the program does not say
}

// Endpoint is the route as rules name it.
func (r Route) Endpoint() ruleset.Endpoint { return ruleset.Route(r.Method, plain(r.Path)) }

// Table is what a program says about itself.
type Table struct {
	Routes    []Route                `json:"routes"`
	Variables map[string]shape.Shape `json:"variables"` // what it registers
	Fallbacks []string               `json:"fallbacks"` // the names of its fallback handlers
}

// Load reads the file that WriteRoutes of a guard writes.
func Load(path string) (*Table, error) {
	text, err := bounded.File(path, bounded.Document)
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
		err = errors.New("there is more after the first value")
	case t.Routes == nil:
		err = errors.New(`there are no "routes"`)
	default:
		_, err = t.At(httpvars.Config{}, nil) // the names of variables
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no routes file, as Guard.WriteRoutes of ginlock or httplock writes it: %w", path, err)
	}
	for i, r := range t.Routes {
		if r.Method == "" || r.Path == "" {
			return nil, fmt.Errorf(`%s: route %d has no method or no path: write {"method": "POST", "path": "/orders/:id"}`, path, i+1)
		}
	}
	return t, nil
}

// At is what expressions have at a route: those of a config, of which Registered
// may have more than the program registers, with the types that are known. body is that
// of the route; nil if it is not known.
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

// Variable is the type of a variable of the program; nil if it has none of the name.
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

// Registered are the names of the program's variables, sorted.
func (t *Table) Registered() []string {
	if t == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.Variables))
}
