package httpvars_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// order is what a handler decodes a body into, with ids of one type.
type order[T any] struct {
	ID      *T                   `json:"id"`
	OrderID *T                   `json:"orderId"`
	Key     *T                   `json:"key"`
	SKU     *T                   `json:"sku"`
	Order   *order[T]            `json:"order"`
	Lines   []*order[T]          `json:"lines"`
	ByName  map[string]*order[T] `json:"byName"`
	IDs     []*T                 `json:"ids"`
}

// seen is what a handler makes of the ids: texts, and nil for those that it does not
// have.
type seen struct {
	id, orderID, key, sku *string
	order                 *seen
	lines, ids            []*seen
	byName                map[string]*seen
}

func see[T any](o *order[T], text func(T) (string, bool)) *seen {
	if o == nil {
		return nil
	}
	one := func(id *T) *string {
		if id == nil {
			return nil
		}
		if t, ok := text(*id); ok {
			return &t
		}
		return &lossy
	}
	s := &seen{one(o.ID), one(o.OrderID), one(o.Key), one(o.SKU), see(o.Order, text), nil, nil, map[string]*seen{}}
	for _, l := range o.Lines {
		s.lines = append(s.lines, see(l, text))
	}
	for _, id := range o.IDs {
		s.ids = append(s.ids, &seen{id: one(id)})
	}
	for name, l := range o.ByName {
		s.byName[name] = see(l, text)
	}
	return s
}

// lossy is an id of which the handler itself lost the text. Its address tells.
var lossy = "\x00lossy"

func decoded[T any](body string, text func(T) (string, bool), numbers bool) (*seen, error) {
	d := json.NewDecoder(strings.NewReader(body))
	if numbers {
		d.UseNumber()
	}
	var o order[T]
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	return see(&o, text), nil
}

// handlers decode a body as their authors do. An error is a request that the handler
// itself refuses.
var handlers = map[string]func(body string) (*seen, error){
	"int64": func(b string) (*seen, error) {
		return decoded(b, func(n int64) (string, bool) { return strconv.FormatInt(n, 10), true }, false)
	},
	"string": func(b string) (*seen, error) {
		return decoded(b, func(s string) (string, bool) { return s, true }, false)
	},
	"json.Number": func(b string) (*seen, error) {
		return decoded(b, func(n json.Number) (string, bool) { return n.String(), true }, false)
	},
	"bool": func(b string) (*seen, error) {
		return decoded(b, func(v bool) (string, bool) { return strconv.FormatBool(v), true }, false)
	},
	"any":         func(b string) (*seen, error) { return decoded(b, anyText, false) },
	"any exactly": func(b string) (*seen, error) { return decoded(b, anyText, true) },
}

// anyText is the text of an id of unknown type. A float64 has lost it beyond 2^53; an
// object or a list has none.
func anyText(v any) (string, bool) {
	switch x := v.(type) {
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64), math.Abs(x) < 1<<53
	case string, bool, json.Number:
		return fmt.Sprint(x), true
	}
	return "", false
}

// views are templates beside what a handler takes for the same ids. None is a handler
// that has no id there.
var views = map[string]func(s *seen) []*string{
	`body.id`: own, `body["id"]`: own, `(body.nowhere ?? body).id`: own,
	`[body][0].id`: own, `map([body], .id)`: own,
	`"id" in body ? body.id : "none"`: orNone(own), `body.id ?? "none"`: orNone(own),
	`body.id == nil ? "none" : body.id`: orNone(own), `"id" in keys(body) ? body.id : "none"`: orNone(own), `string(body.id)`: own,
	`body.orderId`: func(s *seen) []*string { return []*string{s.orderID} }, `body.key`: func(s *seen) []*string { return []*string{s.key} },
	`body["sku"]`:   func(s *seen) []*string { return []*string{s.sku} },
	`body.order.id`: inOrder, `(body.order ?? []).id`: inOrder, `body["order"]?.id`: inOrder, `body.order.id ?? "none"`: orNone(inOrder),
	`(body.order ?? []).id ?? "none"`: orNone(inOrder), `body.order.order.id`: func(s *seen) []*string { return inOrder(s.order) },
	`map(body.lines, .id)`: inLines, `map(filter(body.lines, true), .id)`: inLines, `body.lines[:] | map(.id)`: inLines,
	`map(body.lines, .order.id)`: func(s *seen) (ids []*string) {
		for _, l := range s.lines {
			if l == nil {
				return nil
			}
			ids = append(ids, inOrder(l)...)
		}
		return ids
	},
	`body.ids[:]`: func(s *seen) (ids []*string) {
		for _, id := range s.ids {
			ids = append(ids, id.id)
		}
		return ids
	},
	`keys(body.byName)`: func(s *seen) (ids []*string) {
		for name := range s.byName {
			ids = append(ids, &name)
		}
		return ids
	},
}

func own(s *seen) []*string {
	if s == nil {
		return []*string{nil}
	}
	return []*string{s.id}
}

func inOrder(s *seen) []*string {
	if s == nil {
		return []*string{nil}
	}
	return own(s.order)
}

func inLines(s *seen) (ids []*string) {
	for _, l := range s.lines {
		ids = append(ids, own(l)...)
	}
	return ids
}

// orNone is the id, or none for a handler that has none.
func orNone(view func(*seen) []*string) func(*seen) []*string {
	return func(s *seen) []*string {
		ids := view(s)
		for i, id := range ids {
			if id == nil {
				none := "none"
				ids[i] = &none
			}
		}
		return ids
	}
}

// wanted are the keys of ids, and false if the handler lost one of them or has none.
func wanted(ids []*string) (keys []string, known bool) {
	for _, id := range ids {
		if id == nil || id == &lossy || *id == "" {
			return nil, false
		}
		keys = append(keys, "o:"+encodedText(*id))
	}
	slices.Sort(keys)
	return slices.Compact(keys), len(keys) > 0
}

// encodedText is the text of a value in a key. It is written after the documentation,
// not after the code.
func encodedText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune(":%{}", r) || !strconv.IsPrint(r) {
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
