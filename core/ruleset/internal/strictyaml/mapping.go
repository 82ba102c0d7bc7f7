package strictyaml

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/failpolicy"
)

// Mapping lists the keys that a mapping may have. It reads their values into a T.
type Mapping[T any] struct {
	noun  string // "a rule"
	keys  []Key[T]
	hints map[string]Hint
}

// Key is a key of a mapping.
type Key[T any] struct {
	Name  string // in the file
	Field string // the caller's field that the key sets; several keys may set one
	Read  func(d *Doc, v Value, to *T) bool
}

// Hint is the advice for a key that a mapping does not accept.
type Hint struct {
	Meant   string // the key that was probably meant, "" if that is not known
	Message string // replaces "unknown field: write" and that key
}

// Pair is a key with its value after reading.
type Pair struct {
	Name, Field string
	Key, Node   *yaml.Node
	OK          bool // the value could be read
}

// NewMapping returns a mapping. Messages call it noun. hints contains advice for other keys, by
// [FoldKey].
func NewMapping[T any](noun string, keys []Key[T], hints map[string]Hint) *Mapping[T] {
	return &Mapping[T]{noun: noun, keys: keys, hints: hints}
}

// Names lists the keys.
func (m *Mapping[T]) Names() []string {
	names := make([]string, len(m.keys))
	for i, k := range m.keys {
		names[i] = k.Name
	}
	return names
}

// index returns the place of a key in the list, or -1.
func (m *Mapping[T]) index(name string) int {
	return slices.IndexFunc(m.keys, func(k Key[T]) bool { return k.Name == name })
}

// Read reads the mapping n into to and returns its pairs in their order. It reports a misspelled key
// and returns it as a pair that could not be read, with the field that was probably meant. In problems
// the names of the keys follow prefix, such as "status.".
func (m *Mapping[T]) Read(d *Doc, prefix string, n *yaml.Node, to *T) []Pair {
	seen := make([]Pair, 0, min(len(n.Content)/2, len(m.keys)))
	for v := range Pairs(n, prefix) {
		if d.IsFull() {
			break
		}
		name, ok := d.Name(strings.TrimSuffix(prefix, "."), v.Key)
		if !ok {
			continue
		}
		if first := slices.IndexFunc(seen, func(p Pair) bool { return p.Name == name }); first >= 0 {
			d.ReportTwice(prefix+KeyText(name), seen[first].Key, v.Key)
			continue
		}
		if i := m.index(name); i >= 0 {
			seen = append(seen, Pair{name, m.keys[i].Field, v.Key, v.Node, m.keys[i].Read(d, v, to)})
			continue
		}
		h := m.hint(name)
		d.Reportf(v.Key, prefix+KeyText(name), "%s", h.Message)
		seen = append(seen, Pair{Name: name, Field: m.field(h.Meant), Key: v.Key})
	}
	return seen
}

// ReadFilled reads the mapping v, which must not be empty. Messages show example. It reports whether all
// of the mapping could be read.
func (m *Mapping[T]) ReadFilled(d *Doc, v Value, example string, to *T) bool {
	switch {
	case !d.Is(v, yaml.MappingNode, example):
		return false
	case len(v.Node.Content) == 0:
		d.Reportf(v.Node, v.Field, "empty: write %s, or remove the line", example)
		return false
	}
	all := m.Read(d, v.Field+".", v.Node, to)
	return !slices.ContainsFunc(all, func(p Pair) bool { return !p.OK })
}

// hint returns the advice for a key that the mapping does not accept.
func (m *Mapping[T]) hint(key string) Hint {
	h, known := m.hints[FoldKey(key)]
	switch {
	case known && h.Message != "":
		return h
	case !known && len(key) <= MaxName:
		h.Meant = failpolicy.Nearest(key, m.Names())
	}
	if h.Meant != "" {
		h.Message = "unknown field: write " + h.Meant
	} else {
		h.Message = fmt.Sprintf("unknown field: %s has %s", m.noun, strings.Join(m.Names(), ", "))
	}
	return h
}

// field returns the field that a key sets, or "" if the mapping does not accept the key.
func (m *Mapping[T]) field(name string) string {
	if i := m.index(name); i >= 0 {
		return m.keys[i].Field
	}
	return ""
}

// ReportTwice reports the second of two keys with the same name.
func (d *Doc) ReportTwice(field string, first, second *yaml.Node) {
	d.Reportf(second, field, "given twice: remove this one, or the first in line %d", first.Line)
}

// FoldKey returns a key without the differences between waitTime, wait-time and wait_time.
func FoldKey(key string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(key))
}

// KeyText returns an unknown key for a message, in quotes where it would not stand out.
func KeyText(key string) string {
	if key == "" || strings.ContainsAny(key, " :\"") || !IsPrintable(key) || len(key) > MaxName {
		return fmt.Sprintf("%.100q", key)
	}
	return key
}
