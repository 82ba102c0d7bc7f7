package keyexpr

// Template is a compiled key template. It is immutable and safe for concurrent
// use.
type Template struct {
	source string
	config config
}

// Compile compiles a key template against the variables of schema. It never
// panics; its error joins one *[Error] per problem. Compiling takes tens of
// microseconds and belongs to start-up.
func Compile(template string, schema *Schema, opts ...Option) (*Template, error) {
	return nil, at(template, 0, "not implemented", "")
}

// Key builds the key of a request. The error is an *[EvalError]. For a template
// that yields a list Key is an error unless the list has exactly one element;
// use [Template.Keys].
//
// A template of plain variable references costs about 0.1 µs and one
// allocation, other expressions about 0.5 µs per part.
func (t *Template) Key(env Env) (string, error) { return "", nil }

// Keys builds the keys of a request: one for a plain template, one per element
// for a list. They are sorted and unique. An empty list and one of more than
// [MaxElements] elements are errors.
func (t *Template) Keys(env Env) ([]string, error) { return nil, nil }

// IsList reports whether the template yields one key per element of a list.
func (t *Template) IsList() bool { return false }

// Constant returns the key of a template that uses no variable.
func (t *Template) Constant() (key string, ok bool) { return "", false }

// Uses reports whether the template reads a variable.
func (t *Template) Uses(variable string) bool { return false }

// Variables returns the variables that the template reads, sorted.
func (t *Template) Variables() []string { return nil }

// String returns the source of the template.
func (t *Template) String() string { return t.source }
