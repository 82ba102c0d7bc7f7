package keyexpr

import (
	"slices"
	"strconv"
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
	var m meter
	text, failure := t.join(stack[:0], t.pieces, env, &m)
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
	var m meter
	keys, failure := t.keys(env, &m)
	if failure != nil {
		return nil, t.fail(failure)
	}
	return keys, nil
}

// keys builds those of a list.
func (t *Template) keys(env Env, m *meter) ([]string, *EvalError) {
	head, failure := t.join(nil, t.pieces[:t.list], env, m)
	if failure != nil {
		return nil, failure
	}
	tail, failure := t.join(nil, t.pieces[t.list+1:], env, m)
	if failure != nil {
		return nil, failure
	}
	elements, failure := t.pieces[t.list].elements(env, m)
	if failure != nil {
		return nil, failure
	}
	texts, failure := t.texts(elements)
	if failure != nil {
		return nil, failure
	}
	if !m.spend(env, aroundByte.times((len(head)+len(tail))*len(texts))) {
		return nil, tooCostly(t.pieces[t.list].program.source)
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
func (t *Template) join(text []byte, pieces []piece, env Env, m *meter) ([]byte, *EvalError) {
	for i := range pieces {
		p := &pieces[i]
		if p.program == nil {
			text = append(text, p.literal...)
			continue
		}
		var failure *EvalError
		if text, failure = t.appendPart(text, p, env, m); failure != nil {
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
