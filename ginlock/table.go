package ginlock

import (
	"iter"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/core/ruleset"
)

// table says what was compiled for routes: nil where nothing applies. It is by path,
// because one text is looked up faster than an endpoint of three.
type table map[string][]row

// row is one method of a path.
type row struct {
	method   string
	endpoint *endpoint
}

// find does not allocate.
func (t table) find(method, path string) (e *endpoint, known bool) {
	for _, r := range t[path] {
		if r.method == method {
			return r.endpoint, true
		}
	}
	return nil, false
}

// at is what applies to a route, nil if nothing does.
func (t table) at(route ruleset.Endpoint) *endpoint {
	e, _ := t.find(route.Method, route.Path)
	return e
}

// clone may be added to while others read t.
func (t table) clone() table {
	if t == nil {
		return table{}
	}
	return maps.Clone(t)
}

// add adds a route that is not there yet.
func (t table) add(route ruleset.Endpoint, e *endpoint) {
	t[route.Path] = append(slices.Clip(t[route.Path]), row{route.Method, e})
}

// endpoints are those that apply somewhere, in any order.
func (t table) endpoints() iter.Seq[*endpoint] {
	return func(yield func(*endpoint) bool) {
		for _, rows := range t {
			for _, r := range rows {
				if r.endpoint != nil && !yield(r.endpoint) {
					return
				}
			}
		}
	}
}
