package httpvars

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/keyexpr"
)

// maxJSONDepth bounds the nesting of an untyped body.
const maxJSONDepth = 256

func (q *Request) decodeBody() (any, error) {
	content, _, err := q.content(isJSON, "application/json")
	if err != nil || len(content) == 0 {
		return nil, err
	}
	if !utf8.Valid(content) {
		return nil, badBody("needs a body in UTF-8", nil)
	}
	if err := q.checkNames(content); err != nil {
		return nil, badBody("needs a body of JSON", err)
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	value, err := q.decode(d)
	if err != nil {
		return nil, badBody("needs a body of JSON", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, badBody("needs a body of one JSON value", err)
	}
	return value, nil
}

func (q *Request) decode(d *json.Decoder) (any, error) {
	if q.variables.body == nil {
		return untyped(d, 0)
	}
	target := reflect.New(q.variables.body)
	if err := d.Decode(target.Interface()); err != nil {
		return nil, withoutValue(err)
	}
	return target.Interface(), nil
}

// withoutValue strips what an error quotes of the request.
func withoutValue(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errors.New("the field " + wrong.Field + " is no " + wrong.Type.String())
	}
	return err
}

var (
	errTooDeep   = errors.New("it is nested too deeply")
	errTwice     = errors.New("an object has a name twice")
	errNoLiteral = errors.New("unexpected delimiter")
)

// untyped decodes one value token by token, because encoding/json would let the
// last of equal names win in silence.
func untyped(d *json.Decoder, depth int) (any, error) {
	if depth > maxJSONDepth {
		return nil, errTooDeep
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		switch t {
		case '{':
			return untypedObject(d, depth)
		case '[':
			return untypedList(d, depth)
		}
		return nil, errNoLiteral
	case json.Number:
		return keyexpr.FromJSONNumber(t), nil
	}
	return token, nil
}

func untypedObject(d *json.Decoder, depth int) (any, error) {
	object, names := map[string]any{}, map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, errNoLiteral
		}
		if folded := foldName(name); names[folded] {
			return nil, errTwice
		} else {
			names[folded] = true
		}
		if object[name], err = untyped(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}

func untypedList(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := untyped(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

// foldName maps names that encoding/json takes for the same field to one text.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}
