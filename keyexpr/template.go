package keyexpr

import (
	"slices"
	"strconv"
)

// Template is a compiled key template. It is immutable and safe for concurrent
// use.
type Template struct {
	source string
	config config
	pieces []piece
	list   int // the piece that yields a list, or -1
	used   []string
}

// Key builds the key of a request. The error is an *[EvalError]. For a template
// that yields a list Key is an error unless the list has exactly one element;
// use [Template.Keys].
//
// A template of plain variable references costs about 0.1 µs and one
// allocation, other expressions about 0.5 µs per part.
func (t *Template) Key(env Env) (string, error) {
	if t.list >= 0 {
		return t.onlyKey(env)
	}
	var stack [128]byte
	var m meter
	key := stack[:0]
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.program == nil {
			key = append(key, p.literal...)
			continue
		}
		var failure *EvalError
		if key, failure = t.appendPart(key, p, env, &m); failure != nil {
			return "", t.fail(failure)
		}
	}
	return t.finish(key)
}

func (t *Template) onlyKey(env Env) (string, error) {
	keys, err := t.Keys(env)
	if err != nil {
		return "", err
	}
	if len(keys) > 1 {
		return "", t.fail(&EvalError{Reason: ReasonTooMany, Detail: "yields " + strconv.Itoa(len(keys)) + " keys where one is needed"})
	}
	return keys[0], nil
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
	head, failure := t.join(t.pieces[:t.list], env, &m)
	if failure != nil {
		return nil, t.fail(failure)
	}
	tail, failure := t.join(t.pieces[t.list+1:], env, &m)
	if failure != nil {
		return nil, t.fail(failure)
	}
	elements, failure := t.pieces[t.list].elements(env, &m)
	if failure != nil {
		return nil, t.fail(failure)
	}
	texts, failure := t.texts(elements)
	if failure != nil {
		return nil, t.fail(failure)
	}
	if around := len(head) + len(tail); around > longText && !m.spend(env, keyPrice(around).times(len(texts))) {
		return nil, t.fail(tooCostly(t.pieces[t.list].program.source))
	}
	return t.each(head, texts, tail)
}

// join builds the text of pieces without a list.
func (t *Template) join(pieces []piece, env Env, m *meter) ([]byte, *EvalError) {
	var text []byte
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

func (t *Template) each(head []byte, texts map[string]struct{}, tail []byte) ([]string, error) {
	keys := make([]string, 0, len(texts))
	for text := range texts {
		key, err := t.finish(slices.Concat(head, []byte(text), tail))
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
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
			return nil, &EvalError{
				Reason: ReasonTooMany, Subject: p.program.source,
				Detail: "yields more than " + strconv.Itoa(t.config.maxElements) + " keys",
			}
		}
	}
	return unique, nil
}

// finish applies the limit of the length.
func (t *Template) finish(key []byte) (string, error) {
	if len(key) <= t.config.maxLength {
		return string(key), nil
	}
	if t.config.strict {
		return "", t.fail(&EvalError{Reason: ReasonTooLong, Detail: "is longer than " + strconv.Itoa(t.config.maxLength) +
			" bytes, and the strict key format does not shorten"})
	}
	return string(shorten(key, t.config.maxLength)), nil
}

func (t *Template) fail(failure *EvalError) error {
	failure.Template = t.source
	return failure
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

// Uses reports whether the template reads a variable.
func (t *Template) Uses(variable string) bool {
	_, found := slices.BinarySearch(t.used, variable)
	return found
}

// Variables returns the variables that the template reads, sorted.
func (t *Template) Variables() []string { return slices.Clone(t.used) }

// String returns the source of the template.
func (t *Template) String() string { return t.source }
