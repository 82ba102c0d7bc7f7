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

	config config
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

func (o *origin) fail(failure *EvalError) error {
	failure.Template = o.source
	return failure
}

// String returns the source.
func (o *origin) String() string { return o.source }

// Key builds the key of a request. The error is an *[EvalError]. For a template
// that yields a list Key is an error unless the list has exactly one element;
// use [Template.Keys].
//
// A template of plain variable references costs about 0.1 µs and one
// allocation, other expressions about 0.5 µs per part.
func (t *Template) Key(env Env) (string, error) {
	if t.list >= 0 {
		keys, err := t.Keys(env)
		if err == nil && len(keys) > 1 {
			err = t.fail(&EvalError{Reason: ReasonTooMany, Detail: "yields " + strconv.Itoa(len(keys)) + " keys where one is needed"})
		}
		if err != nil {
			return "", err
		}
		return keys[0], nil
	}
	var stack [128]byte
	text, failure := t.join(stack[:0], t.pieces, &rendering{env: env})
	if failure != nil {
		return "", t.fail(failure)
	}
	key, failure := t.finish(text)
	if failure != nil {
		return "", t.fail(failure)
	}
	return key, nil
}

// Keys builds the keys of a request: one for a plain template, one per element
// for a list. They are sorted and unique. An empty list and one of more than
// [MaxElements] elements are errors.
func (t *Template) Keys(env Env) ([]string, error) {
	if t.list < 0 {
		key, err := t.Key(env)
		if err != nil {
			return nil, err
		}
		return []string{key}, nil
	}
	keys, failure := t.keys(&rendering{env: env})
	if failure != nil {
		return nil, t.fail(failure)
	}
	return keys, nil
}

// rendering is one call of Key or Keys. A template of plain references needs no evaluation.
type rendering struct {
	env        Env
	evaluation *evaluation
}

// run evaluates a part.
func (r *rendering) run(p *program) (any, *EvalError) {
	if p.ref != nil {
		return p.ref.value(r.env)
	}
	if r.evaluation == nil {
		r.evaluation = newEvaluation(r.env)
	}
	return p.run(r.evaluation)
}

// keys builds those of a list.
func (t *Template) keys(r *rendering) ([]string, *EvalError) {
	head, failure := t.join(nil, t.pieces[:t.list], r)
	if failure != nil {
		return nil, failure
	}
	tail, failure := t.join(nil, t.pieces[t.list+1:], r)
	if failure != nil {
		return nil, failure
	}
	p := &t.pieces[t.list]
	elements, failure := p.elements(r)
	if failure != nil {
		return nil, failure
	}
	texts, failure := t.texts(elements)
	if failure != nil {
		return nil, failure
	}
	if (len(head)+len(tail))*len(texts) > maxRoom {
		return nil, failed(ReasonTooLong, p.program.source, "makes too many keys of long values")
	}
	keys := make([]string, 0, len(texts))
	for text := range texts {
		key, failure := t.finish(slices.Concat(head, []byte(text), tail))
		if failure != nil {
			return nil, failure
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
}

// join appends the text of pieces without a list.
func (t *Template) join(text []byte, pieces []piece, r *rendering) ([]byte, *EvalError) {
	for i := range pieces {
		p := &pieces[i]
		if p.program == nil {
			text = append(text, p.literal...)
			continue
		}
		var failure *EvalError
		if text, failure = t.appendPart(text, p, r); failure != nil {
			return nil, failure
		}
	}
	return text, nil
}

// texts encodes the elements of a list, each different one once: what is around
// them may be long, and is copied and hashed for each.
func (t *Template) texts(elements []any) (map[string]struct{}, *EvalError) {
	p := &t.pieces[t.list]
	unique := make(map[string]struct{}, min(len(elements), t.config.maxElements))
	var text []byte
	for _, element := range elements {
		var failure *EvalError
		if text, failure = t.appendValue(text[:0], p, normalize(element)); failure != nil {
			return nil, failure
		}
		unique[string(text)] = struct{}{}
		if len(unique) > t.config.maxElements {
			return nil, failed(ReasonTooMany, p.program.source, "yields more than "+strconv.Itoa(t.config.maxElements)+" keys")
		}
	}
	return unique, nil
}

// finish applies the limit of the length.
func (t *Template) finish(key []byte) (string, *EvalError) {
	switch limit := t.config.maxLength; {
	case len(key) <= limit:
		return string(key), nil
	case t.config.strict:
		return "", &EvalError{Reason: ReasonTooLong, Detail: "is longer than " + strconv.Itoa(limit) + " bytes, and the strict key format does not shorten"}
	default:
		return string(shorten(key, limit)), nil
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

// appendPart appends the encoded value of a part that is not a list.
func (t *Template) appendPart(dst []byte, p *piece, r *rendering) ([]byte, *EvalError) {
	if ref := p.program.ref; ref != nil {
		if text, ok, failure := ref.string(r.env); failure != nil {
			return dst, failure
		} else if ok {
			return t.appendText(dst, p, text)
		}
	}
	v, failure := r.run(p.program)
	if failure != nil {
		return dst, failure
	}
	return t.appendValue(dst, p, v)
}

// appendValue appends the encoded text of a value. The text is the value's whole
// identity: 42 and "42" are the same, wherever they come from.
func (t *Template) appendValue(dst []byte, p *piece, v any) ([]byte, *EvalError) {
	switch x := v.(type) {
	case string:
		return t.appendText(dst, p, x)
	case int:
		if x < 0 && p.delimiter == '-' {
			return t.appendText(dst, p, strconv.Itoa(x))
		}
		return strconv.AppendInt(dst, int64(x), 10), nil
	case bool:
		return t.appendText(dst, p, strconv.FormatBool(x))
	case uint64:
		return strconv.AppendUint(dst, x, 10), nil
	case json.Number:
		return t.appendText(dst, p, x.String())
	case nil:
		return dst, failed(ReasonMissing, p.program.source, "has no value")
	}
	return dst, failed(ReasonWrongType, p.program.source, "is "+describe(v)+"; a key part is a string, a bool, an integer or an enum"+hintFor(p, v))
}

func hintFor(p *piece, v any) string {
	if _, isList := v.([]any); isList && !p.list {
		return "; write " + p.program.source + "[:] for one key per element"
	}
	return ""
}

func (t *Template) appendText(dst []byte, p *piece, text string) ([]byte, *EvalError) {
	switch {
	case text == "":
		return dst, failed(ReasonEmpty, p.program.source, "is empty")
	case len(text) > maxText:
		return dst, tooLong(p.program.source)
	}
	if strings.TrimSpace(text) != text {
		return dst, failed(ReasonCharacter, p.program.source, "begins or ends with white space; write trim(…) where it does not count")
	}
	out, clean := appendEncoded(dst, text, p.delimiter)
	if !clean && t.config.strict {
		return dst, failed(ReasonCharacter, p.program.source, p.strictDetail())
	}
	return out, nil
}

func (p *piece) strictDetail() string {
	detail := "holds a character that the strict key format does not encode: a colon, %, a brace, one that is not printable"
	if p.delimiter != 0 && p.delimiter != ':' {
		detail += fmt.Sprintf(", or the delimiter %q", p.delimiter)
	}
	return detail
}

// elements returns what a list part yields.
func (p *piece) elements(r *rendering) ([]any, *EvalError) {
	source := p.program.source
	v, failure := r.run(p.program)
	if failure != nil {
		return nil, failure
	}
	list, ok := v.([]any)
	switch {
	case v == nil:
		return nil, failed(ReasonMissing, source, "has no value")
	case !ok:
		return nil, failed(ReasonWrongType, source, "is "+describe(v)+", not a list")
	case len(list) == 0:
		return nil, failed(ReasonEmpty, source, "has no elements")
	case madeOf(v) > maxRoom:
		return nil, failed(ReasonTooLong, source, fmt.Sprintf("has more than %d KiB of text", maxRoom>>10))
	}
	return list, nil
}

// CheckWithout evaluates the parts that read none of the variables named, and returns
// the error of the first that fails, an *[EvalError]: what can be known of a key before
// those variables are there, such as the body of a request. Nil says that nothing is
// wrong so far.
func (t *Template) CheckWithout(env Env, variables ...string) error {
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.program == nil || slices.ContainsFunc(variables, p.program.uses) {
			continue
		}
		var failure *EvalError
		if r := (&rendering{env: env}); p.list {
			_, failure = p.elements(r)
		} else {
			_, failure = t.appendPart(nil, p, r)
		}
		if failure != nil {
			return t.fail(failure)
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
	p, meant, problems := compileExpression(segment{template: expression, text: expression}, schema, true)
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
func (c *Condition) Eval(env Env) (bool, error) {
	v, failure := c.program.run(newEvaluation(env))
	result, ok := v.(bool)
	if failure == nil && !ok {
		failure = failed(ReasonWrongType, "the condition", "is "+describe(v)+", not a bool")
	}
	if failure != nil {
		return false, c.fail(failure)
	}
	return result, nil
}
