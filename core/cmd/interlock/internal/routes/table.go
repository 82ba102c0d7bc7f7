// Package routes knows the HTTP routes of a program: from the file that the program
// writes about itself, or from what rules say.
package routes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Route is an HTTP route as it was registered.
type Route struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   any    `json:"body"` // its type; nil if the program does not say
}

// Endpoint is the route as rules name it.
func (r Route) Endpoint() ruleset.Endpoint { return ruleset.Route(r.Method, plain(r.Path)) }

// Table is what a program says about itself.
type Table struct {
	Routes    []Route        `json:"routes"`
	Variables map[string]any `json:"variables"` // what it registers, with the types
	Fallbacks []string       `json:"fallbacks"` // the names of its fallback handlers
}

// Load reads the file that ginlock's WriteRoutes writes.
func Load(path string) (*Table, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &Table{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(t)
	if err == nil && d.More() {
		err = errors.New("there is more after the first value")
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no routes file, as Guard.WriteRoutes of ginlock writes it: %w", path, err)
	}
	for i, r := range t.Routes {
		if r.Method == "" || r.Path == "" {
			return nil, fmt.Errorf(`%s: route %d has no method or no path: write {"method": "POST", "path": "/orders/:id"}`, path, i+1)
		}
	}
	return t, nil
}

// Variable is a variable that a program registers.
type Variable struct {
	Name string
	Type *shape.Type
}

// Registered are the program's variables, sorted.
func (t *Table) Registered() []Variable {
	var list []Variable
	for _, name := range slices.Sorted(maps.Keys(t.Variables)) {
		list = append(list, Variable{name, shape.Described(t.Variables[name]).Variable("the variable " + name)})
	}
	return list
}
