package keyexpr

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// maxJSONDepth bounds the nesting of a document.
const maxJSONDepth = 256

var (
	errNoText   = errors.New("it is not valid UTF-8")
	errTooDeep  = errors.New("it is nested too deeply")
	errTwice    = errors.New("an object has a name twice (upper and lower case are the same)")
	errMore     = errors.New("there is more than one value")
	errTooSmall = errors.New("it has a number that is too small to be exact")
)

// DecodeJSON decodes a document as clients send it, for a variable of [JSONType].
// Expressions see in it what a handler sees that decodes it with encoding/json into a
// struct: names are found in any case, and numbers are what [FromJSONNumber] says. What handlers would
// disagree about is an error: a name that is twice in one object, be it in another case,
// text that is not UTF-8, or a second value. So is a number next to zero (below 1e-307):
// no float64 has it exactly, and each takes strconv 20 µs and more, which is seconds for
// a megabyte of them. Else decoding costs about what encoding/json costs a handler.
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
		if t == '{' {
			return decodeObject(d, depth)
		}
		return decodeList(d, depth)
	case json.Number:
		number := FromJSONNumber(t)
		if tooSmall(t.String(), number) { // the first one, so that only one is read
			return nil, errTooSmall
		}
		return number, nil
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
		name, _ := token.(string) //nolint:errcheck // the decoder sees to it
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

// tooSmall reports whether a number of JSON is next to zero, without being zero.
func tooSmall(text string, number any) bool {
	if f, ok := number.(float64); !ok || math.Abs(f) >= 1e-307 {
		return false
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return strings.ContainsAny(mantissa, "123456789")
}
