package keyexpr

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// maxJSONDepth bounds the nesting of a document.
const maxJSONDepth = 256

var (
	errNoText    = errors.New("it is not valid UTF-8")
	errTooDeep   = errors.New("it is nested too deeply")
	errTwice     = errors.New("an object has a name twice")
	errNoLiteral = errors.New("unexpected delimiter")
	errMore      = errors.New("there is more than one value")
)

// DecodeJSON decodes a document as clients send it, for a variable of [JSONType].
// Expressions see in it what a handler sees that decodes it with encoding/json into a
// struct: names are found in any case, and numbers are exact. What handlers would
// disagree about is an error: a name that is twice in one object, be it in another case,
// text that is not UTF-8, or a second value.
func DecodeJSON(document []byte) (any, error) {
	if !utf8.Valid(document) {
		return nil, errNoText
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	value, err := decodeValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errMore, err)
	}
	return value, nil
}

// decodeValue decodes one value token by token, because encoding/json would let the
// last of equal names win in silence.
func decodeValue(d *json.Decoder, depth int) (any, error) {
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
			return decodeObject(d, depth)
		case '[':
			return decodeList(d, depth)
		}
		return nil, errNoLiteral
	case json.Number:
		return FromJSONNumber(t), nil
	}
	return token, nil
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	object := jsonObject{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, errNoLiteral
		}
		folded := foldName(name)
		if _, twice := object[folded]; twice {
			return nil, errTwice
		}
		value, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		object[folded] = member{name, value}
	}
	_, err := d.Token()
	return object, err
}

func decodeList(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}
