package ruleset

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/failpolicy"
)

// table is what a mapping may contain.
type table[T any] struct {
	what  string // "a rule"
	rows  []row[T]
	index map[string]int  // of rows, by name
	hints map[string]hint // what to say about other keys, by foldKey
}

// row is one key of a mapping: how its value gets into a T.
type row[T any] struct {
	name  string // in the file
	field string // what is unreadable when the value is, and has the value's source
	read  func(f *fileReader, v value, to *T) bool
}

// value is a node to be read, with what to call it.
type value struct {
	field string     // such as "wait_time" or "keys[1]"
	key   *yaml.Node // nil in a list
	node  *yaml.Node
	flow  bool // inside of […] or {…}
}

// hint is what to write instead of a key that is no row.
type hint struct {
	meant   string // the row that was probably meant, "" if none was
	message string // instead of "write" and that name
}

// found is what became of a key.
type found struct {
	name, field string
	key         *yaml.Node
	at          Source // of the value
	ok          bool   // it could be read
}

func newTable[T any](what string, rows []row[T], hints map[string]hint) *table[T] {
	t := &table[T]{what: what, rows: rows, index: make(map[string]int, len(rows)), hints: hints}
	for i, r := range rows {
		t.index[r.name] = i
	}
	return t
}

// names lists the keys.
func (t *table[T]) names() []string {
	names := make([]string, len(t.rows))
	for i, r := range t.rows {
		names[i] = r.name
	}
	return names
}

// hint says what to write instead of a key, and which row was meant.
func (t *table[T]) hint(key string) hint {
	h, known := t.hints[foldKey(key)]
	switch {
	case known && h.message != "":
		return h
	case !known && len(key) <= maxNameLength:
		h.meant = failpolicy.Nearest(key, t.names())
	}
	if h.meant != "" {
		h.message = "unknown field: write " + h.meant
	} else {
		h.message = fmt.Sprintf("unknown field: %s has %s", t.what, strings.Join(t.names(), ", "))
	}
	return h
}

// foldKey is a key without what tells waitTime, wait-time and wait_time apart.
func foldKey(key string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(key))
}

// readMapping reads the mapping n into to and returns what became of its keys, in
// their order. A key that is misspelled counts as the one that was meant, unread.
// prefix precedes the keys in problems: "status.".
func readMapping[T any](f *fileReader, t *table[T], prefix string, n *yaml.Node, to *T) []found {
	seen := make([]found, 0, min(len(n.Content)/2, len(t.rows)))
	for key, node := range pairs(n) {
		if f.isFull() {
			break
		}
		name, ok := f.readKey(strings.TrimSuffix(prefix, "."), key)
		if !ok {
			continue
		}
		if first := slices.IndexFunc(seen, func(s found) bool { return s.name == name }); first >= 0 {
			f.reportTwice(prefix+keyText(name), seen[first].key, key)
			continue
		}
		i, known := t.index[name]
		if !known {
			h := t.hint(name)
			f.reportf(key, prefix+keyText(name), "%s", h.message)
			seen = append(seen, found{name: name, field: t.field(h.meant), key: key})
			continue
		}
		v := value{field: prefix + name, key: key, node: node, flow: n.Style&yaml.FlowStyle != 0}
		seen = append(seen, found{name, t.rows[i].field, key, f.of(node), t.rows[i].read(f, v, to)})
	}
	return seen
}

// field is the field of a row, "" if there is none.
func (t *table[T]) field(name string) string {
	if i, ok := t.index[name]; ok {
		return t.rows[i].field
	}
	return ""
}

// pairs are the keys and values of a mapping.
func pairs(n *yaml.Node) func(func(key, node *yaml.Node) bool) {
	return func(yield func(key, node *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

func (f *fileReader) reportTwice(field string, first, second *yaml.Node) {
	f.reportf(second, field, "given twice: remove this one, or the first in line %d", first.Line)
}

// readKey reads a key of the mapping that is called field.
func (f *fileReader) readKey(field string, key *yaml.Node) (string, bool) {
	switch {
	case key.Kind == yaml.ScalarNode && key.Tag == "!!merge":
		f.reportf(key, field, "<< is not read here, because a value is to have one place: %s", insteadOfAlias)
	case !f.isPlain(value{field: field, node: key}):
	case key.Tag == "!!null":
		f.reportf(key, field, "a name is missing before the colon")
	case key.Kind != yaml.ScalarNode:
		f.reportf(key, field, "a %s as a name: quote it if the braces or brackets belong to a value", kindName(key))
	case key.Tag != "!!str":
		f.reportf(key, field, "%s and no name: quote it if it is to be one", scalarText(key))
	default:
		return key.Value, true
	}
	return "", false
}

// keyText is an unknown key, fit for a message.
func keyText(key string) string {
	if key == "" || strings.ContainsAny(key, " \n\t:\"") || len(key) > maxNameLength {
		return fmt.Sprintf("%.100q", key)
	}
	return key
}
