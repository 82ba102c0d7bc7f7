// Package shape gives JSON the Go types that key expressions are checked against:
// from a sample of a body, or from what a program says about its types.
package shape

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

type kind uint8

const (
	kindNull kind = iota // only null was seen
	kindAny
	kindString
	kindBool
	kindInt
	kindFloat
	kindList
	kindObject
)

// Shape is what is known of the values in one place. It does not change once it is
// made.
type Shape struct {
	kind   kind
	elem   *Shape
	fields map[string]*Shape
}

// Sample is the shape of a JSON document: objects have the fields that they have
// there, and the elements of a list those that any of them has.
func Sample(document []byte) (*Shape, error) {
	value, err := parse(document)
	if err != nil {
		return nil, err
	}
	return ofValue(value, maxDepth), nil
}

// maxDepth is how deep types go. Of what is deeper nothing is known.
const maxDepth = 50

func parse(document []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(document)))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	if d.More() {
		return nil, fmt.Errorf("no JSON: there is more after the first value")
	}
	return value, nil
}

func ofValue(value any, depth int) *Shape {
	if depth == 0 {
		return &Shape{kind: kindAny}
	}
	switch v := value.(type) {
	case nil:
		return &Shape{kind: kindNull}
	case string:
		return &Shape{kind: kindString}
	case bool:
		return &Shape{kind: kindBool}
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return &Shape{kind: kindFloat}
		}
		return &Shape{kind: kindInt}
	case []any:
		elem := &Shape{kind: kindNull}
		for _, e := range v {
			elem = merge(elem, ofValue(e, depth-1))
		}
		return &Shape{kind: kindList, elem: elem}
	case map[string]any:
		s := &Shape{kind: kindObject, fields: map[string]*Shape{}}
		for name, field := range v {
			s.fields[name] = ofValue(field, depth-1)
		}
		return s
	default:
		return &Shape{kind: kindAny}
	}
}

// merge is a shape that both values have.
func merge(a, b *Shape) *Shape {
	switch {
	case a.kind == kindNull:
		return b
	case b.kind == kindNull:
		return a
	case a.kind == kindInt && b.kind == kindFloat, a.kind == kindFloat && b.kind == kindInt:
		return &Shape{kind: kindAny}
	case a.kind != b.kind:
		return &Shape{kind: kindAny}
	case a.kind == kindList:
		return &Shape{kind: kindList, elem: merge(a.elem, b.elem)}
	case a.kind == kindObject:
		s := &Shape{kind: kindObject, fields: maps.Clone(a.fields)}
		for name, field := range b.fields {
			if own := s.fields[name]; own != nil {
				field = merge(own, field)
			}
			s.fields[name] = field
		}
		return s
	default:
		return a
	}
}

// Described is the shape of a type in the words of a routes file: "string",
// "integer", "number", "boolean", "any", [type], {"field": type}. A word that is not
// known is any.
func Described(description any) *Shape {
	words := map[string]kind{"string": kindString, "integer": kindInt, "number": kindFloat, "boolean": kindBool}
	switch d := description.(type) {
	case string:
		if k, ok := words[d]; ok {
			return &Shape{kind: k}
		}
	case []any:
		if len(d) == 1 {
			return &Shape{kind: kindList, elem: Described(d[0])}
		}
	case map[string]any:
		s := &Shape{kind: kindObject, fields: map[string]*Shape{}}
		for name, field := range d {
			s.fields[name] = Described(field)
		}
		return s
	}
	return &Shape{kind: kindAny}
}

// names are the fields of an object, sorted.
func (s *Shape) names() []string { return slices.Sorted(maps.Keys(s.fields)) }
