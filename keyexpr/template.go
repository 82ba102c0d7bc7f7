package keyexpr

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Template is a compiled key template. It is immutable and safe for concurrent
// use.
type Template struct {
	origin

	format Format
	pieces []piece
	list   int // the piece that yields a list, or -1
}

// origin is what a template or condition was made of.
type origin struct {
	source string
	used   []string // sorted
}

// Uses reports whether a variable is read.
func (o *origin) Uses(variable string) bool { return slices.Contains(o.used, variable) }

// Variables returns the variables that are read, sorted.
func (o *origin) Variables() []string { return slices.Clone(o.used) }

// caught returns the failure of an evaluation as an error.
func (o *origin) caught(err *error) {
	switch p := recover().(type) {
	case nil:
	case *EvalError:
		p.Template = o.source
		*err = p
	default: // of the program
		panic(p)
	}
}

// String returns the source.
func (o *origin) String() string { return o.source }

// Key builds the key of a request. The error is an *[EvalError]. For a template
// that yields a list Key is an error unless the list has exactly one element;
// use [Template.Keys].
//
// A template of plain variable references costs about 0.1 µs and two
// allocations, other expressions about 0.5 µs per part.
func (t *Template) Key(env Env) (key string, err error) {
	defer t.caught(&err)
	if t.list >= 0 {
		keys := t.keys(&rendering{env: env})
		if len(keys) > 1 {
			panic(failed(ReasonTooMany, "", "yields "+strconv.Itoa(len(keys))+" keys where one is needed"))
		}
		return keys[0], nil
	}
	var stack [128]byte
	return t.finish(t.join(stack[:0], t.pieces, &rendering{env: env})), nil
}

// Keys builds the keys of a request: one for a plain template, one per element
// for a list. They are sorted and unique. An empty list and one that makes more than
// [DefaultMaxElements] are errors.
func (t *Template) Keys(env Env) (keys []string, err error) {
	if t.list < 0 {
		key, err := t.Key(env)
		if err != nil {
			return nil, err
		}
		return []string{key}, nil
	}
	defer t.caught(&err)
	return t.keys(&rendering{env: env}), nil
}

// rendering is one call of Key or Keys. A template of plain references needs no evaluation.
type rendering struct {
	env        Env
	evaluation *evaluation
}

// run evaluates a part.
func (r *rendering) run(p *program) any {
	if p.ref != nil {
		return p.ref.value(r.env)
	}
	if r.evaluation == nil {
		r.evaluation = newEvaluation(r.env)
	}
	return p.run(r.evaluation)
}

// keys builds those of a list.
func (t *Template) keys(r *rendering) []string {
	head, tail := t.join(nil, t.pieces[:t.list], r), t.join(nil, t.pieces[t.list+1:], r)
	p := &t.pieces[t.list]
	texts := t.texts(p.elements(r))
	if (len(head)+len(tail))*len(texts) > maxRoom {
		panic(failed(ReasonTooLong, p.program.source, "makes too many keys of long values"))
	}
	keys := make([]string, 0, len(texts))
	for text := range texts {
		keys = append(keys, t.finish(slices.Concat(head, []byte(text), tail)))
	}
	slices.Sort(keys)
	return keys
}

// join appends the text of pieces without a list.
func (t *Template) join(text []byte, pieces []piece, r *rendering) []byte {
	for i := range pieces {
		if p := &pieces[i]; p.program == nil {
			text = append(text, p.literal...)
		} else {
			text = t.appendValue(text, p, r.run(p.program))
		}
	}
	return text
}

// texts encodes the elements of a list, each different one once: what is around
// them may be long, and is copied and hashed for each.
func (t *Template) texts(elements []any) map[string]struct{} {
	p := &t.pieces[t.list]
	unique := make(map[string]struct{}, min(len(elements), DefaultMaxElements))
	var text []byte
	for _, element := range elements {
		text = t.appendValue(text[:0], p, normalize(element))
		unique[string(text)] = struct{}{}
		if len(unique) > DefaultMaxElements {
			panic(failed(ReasonTooMany, p.program.source, fmt.Sprintf("yields more than %d keys", DefaultMaxElements)))
		}
	}
	return unique
}

// finish applies the limit of the length.
func (t *Template) finish(key []byte) string {
	switch limit := t.format.maxLength; {
	case len(key) <= limit:
		return string(key)
	case t.format.Strict:
		panic(failed(ReasonTooLong, "", "is longer than "+strconv.Itoa(limit)+" bytes, and the strict key format does not shorten"))
	default:
		return string(shorten(key, limit))
	}
}

// IsList reports whether the template yields one key per element of a list.
func (t *Template) IsList() bool { return t.list >= 0 }

// Constant returns the key of a template that uses no variable.
func (t *Template) Constant() (key string, ok bool) {
	if len(t.pieces) == 1 && t.pieces[0].program == nil {
		return t.pieces[0].literal, true
	}
	return "", false
}

// piece is literal text or a part of a template.
type piece struct {
	literal   string
	program   *program // nil for literal text
	delimiter rune     // the character that ends the part's values, or 0
	list      bool
	offset    int // in the template, for messages
}

// appendValue appends the encoded text of a value. The text is the value's whole
// identity: 42 and "42" are the same, wherever they come from.
func (t *Template) appendValue(dst []byte, p *piece, v any) []byte {
	switch x := v.(type) {
	case string:
		return t.appendText(dst, p, x)
	case int:
		if x < 0 && p.delimiter == '-' {
			return t.appendText(dst, p, strconv.Itoa(x))
		}
		return strconv.AppendInt(dst, int64(x), 10)
	case bool:
		return t.appendText(dst, p, strconv.FormatBool(x))
	case uint64:
		return strconv.AppendUint(dst, x, 10)
	case json.Number:
		return t.appendText(dst, p, x.String())
	case nil:
		panic(failed(ReasonMissing, p.program.source, "has no value"))
	}
	hint := ""
	if isList(v) && !p.list {
		hint = "; write " + p.program.source + "[:] for one key per element"
	}
	panic(failed(ReasonWrongType, p.program.source, "is "+describe(v)+"; a key part is a string, a bool, an integer or an enum"+hint))
}

func (t *Template) appendText(dst []byte, p *piece, text string) []byte {
	source := p.program.source
	switch {
	case text == "":
		panic(failed(ReasonEmpty, source, "is empty"))
	case len(text) > maxText:
		panic(tooLong(source))
	case strings.TrimSpace(text) != text:
		panic(failed(ReasonCharacter, source, "begins or ends with white space; write trim(…) where it does not count"))
	}
	out, clean := appendEncoded(dst, text, p.delimiter)
	if !clean && t.format.Strict {
		panic(failed(ReasonCharacter, source, p.strictDetail()))
	}
	return out
}

func (p *piece) strictDetail() string {
	detail := "holds a character that the strict key format does not encode: a colon, %, a brace, one that is not printable"
	if p.delimiter != 0 && p.delimiter != ':' {
		detail += fmt.Sprintf(", or the delimiter %q", p.delimiter)
	}
	return detail
}

// elements returns what a list part yields.
func (p *piece) elements(r *rendering) []any {
	source := p.program.source
	v := r.run(p.program)
	list, ok := v.([]any)
	switch {
	case v == nil:
		panic(failed(ReasonMissing, source, "has no value"))
	case !ok:
		panic(failed(ReasonWrongType, source, "is "+describe(v)+", not a list"))
	case len(list) == 0:
		panic(failed(ReasonEmpty, source, "has no elements"))
	case madeOf(v) > maxRoom:
		panic(failed(ReasonTooLong, source, fmt.Sprintf("has more than %d KiB of text", maxRoom>>10)))
	}
	return list
}

// CheckWithout evaluates the parts that read none of the variables named, and returns
// the error of the first that fails, an *[EvalError]: what can be known of a key before
// those variables are there, such as the body of a request. Nil says that nothing is
// wrong so far.
func (t *Template) CheckWithout(env Env, variables ...string) (err error) {
	defer t.caught(&err)
	for i := range t.pieces {
		p, r := &t.pieces[i], &rendering{env: env}
		switch {
		case p.program == nil || slices.ContainsFunc(variables, p.program.uses):
		case p.list:
			p.elements(r)
		default:
			t.appendValue(nil, p, r.run(p.program))
		}
	}
	return nil
}

func (p *program) uses(variable string) bool { return p.used[variable] }

// Condition is a compiled boolean expression. It is immutable and safe for
// concurrent use.
type Condition struct {
	origin

	program *program
}

// CompileCondition compiles a bare boolean expression, without #{…}, against
// the variables of schema. Its error joins one *[Error] per problem.
//
// Missing values are empty in a condition: "", 0, false or an empty list, as
// the type of the variable or the other operand demands, and the zero of an enum. A field
// with a declared default has its default. Comparing with nil still shows whether a value is there.
func CompileCondition(expression string, schema *Schema) (*Condition, error) {
	if problem := checkSize(expression, "condition"); problem != nil {
		return nil, problem
	}
	if inner, ok := onePart(expression); ok {
		return nil, at(expression, 0, "a condition is a bare expression without #{…}", inner)
	}
	if schema == nil {
		schema = &Schema{}
	}
	p, meant, problems := compileExpression(segment{template: expression, text: expression, isExpr: true}, schema, true)
	if len(problems) > 0 {
		for _, problem := range problems {
			problem.Suggestion = cmp.Or(meant, problem.Suggestion)
		}
		return nil, joined(problems)
	}
	if p.typ.kind != kindBool && p.typ.kind != kindAny {
		return nil, at(expression, 0, "the condition is "+p.typ.describe()+", not a bool", "")
	}
	return &Condition{origin: origin{expression, slices.Sorted(maps.Keys(p.used))}, program: p}, nil
}

// onePart returns the expression of a condition written as a template.
func onePart(expression string) (string, bool) {
	segments, problem := split(expression)
	if problem == nil && len(segments) == 1 && segments[0].isExpr {
		return segments[0].text, true
	}
	return "", false
}

// Eval evaluates the condition for a request. The error is an *[EvalError].
func (c *Condition) Eval(env Env) (met bool, err error) {
	defer c.caught(&err)
	v := c.program.run(newEvaluation(env))
	met, ok := v.(bool)
	if !ok {
		panic(failed(ReasonWrongType, "the condition", "is "+describe(v)+", not a bool"))
	}
	return met, nil
}
