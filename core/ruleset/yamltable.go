package ruleset

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/failpolicy"
)

// value is a node to be read, with what to call it.
type value struct {
	field string     // such as "wait_time" or "keys[1]"
	key   *yaml.Node // nil in a list
	node  *yaml.Node
	flow  bool // inside of […] or {…}
}

// row is one key of a mapping: how its value gets into a T.
type row[T any] struct {
	name  string // in the file
	field string // what is broken when the value is, and has the value's source
	read  func(f *fileReader, v value, to *T) bool
}

// table is what a mapping may contain.
type table[T any] struct {
	what  string            // "a rule"
	rows  []row[T]          // in the order of the documentation
	index map[string]int    // of rows, by name
	hints map[string]string // keys that are no rows, with what to write instead
}

func newTable[T any](what string, hints map[string]string, rows []row[T]) *table[T] {
	t := &table[T]{what: what, rows: rows, index: map[string]int{}, hints: hints}
	for i, r := range rows {
		t.index[r.name] = i
	}
	return t
}

func (t *table[T]) names() []string {
	names := make([]string, len(t.rows))
	for i, r := range t.rows {
		names[i] = r.name
	}
	return names
}

// unknown says what to write instead of a key, and which row was meant, if one was.
func (t *table[T]) unknown(key string) (message, meant string) {
	if hint, ok := t.hints[foldKey(key)]; ok {
		cut := strings.IndexAny(hint, ": ")
		if cut < 0 {
			cut = len(hint)
		}
		return "unknown: write " + hint, hint[:cut]
	}
	if meant = failpolicy.Nearest(key, t.names()); meant != "" {
		return "unknown: write " + meant, meant
	}
	return fmt.Sprintf("unknown: %s has %s", t.what, strings.Join(t.names(), ", ")), ""
}

// foldKey is a key without the differences between waitTime, wait-time and
// wait_time.
func foldKey(key string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(key))
}

// found is what became of a key.
type found struct {
	name, field string
	key         *yaml.Node
	at          Source // of the value
	ok          bool   // it could be read
}

// readMapping reads the mapping n into to, and returns what became of its keys in
// their order. A misspelled key counts as the one that was meant, unread.
func readMapping[T any](f *fileReader, t *table[T], prefix string, n *yaml.Node, to *T) []found {
	seen := make([]found, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, node := n.Content[i], n.Content[i+1]
		name, ok := f.readKey(prefix, key)
		if !ok {
			continue
		}
		if first := slices.IndexFunc(seen, func(s found) bool { return s.name == name }); first >= 0 {
			f.reportf(key, prefix+name, "given twice (the first is in line %d): remove one", seen[first].key.Line)
			continue
		}
		j, known := t.index[name]
		if !known {
			message, meant := t.unknown(name)
			f.reportf(key, prefix+keyText(name), "%s", message)
			seen = append(seen, found{name: name, field: t.fieldOf(meant), key: key})
			continue
		}
		r := &t.rows[j]
		v := value{field: prefix + name, key: key, node: node, flow: n.Style&yaml.FlowStyle != 0}
		seen = append(seen, found{name, r.field, key, f.of(node), r.read(f, v, to)})
	}
	return seen
}

func (t *table[T]) fieldOf(name string) string {
	if i, ok := t.index[name]; ok {
		return t.rows[i].field
	}
	return ""
}

// readKey reads the key of a mapping.
func (f *fileReader) readKey(prefix string, key *yaml.Node) (string, bool) {
	field := strings.TrimSuffix(prefix, ".")
	switch {
	case key.Kind == yaml.ScalarNode && key.Tag == "!!merge":
		f.reportf(key, field, "<< is not read here, so that every value has one place: write the values out, or give them a name under profiles:")
	case !f.isPlain(value{field: field, node: key}):
	case key.Kind != yaml.ScalarNode:
		f.reportf(key, field, "a %s as a key: write a word%s", kindName(key), templateHint(key))
	case key.Tag != "!!str":
		f.reportf(key, field, "%s as a key: write a word", scalarText(key))
	default:
		return key.Value, true
	}
	return "", false
}

// keyText is a key for a message.
func keyText(key string) string {
	if key == "" || strings.ContainsAny(key, " \n\t:\"") || len(key) > maxNameLength {
		return fmt.Sprintf("%.100q", key)
	}
	return key
}
