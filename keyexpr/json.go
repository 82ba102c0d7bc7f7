package keyexpr

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"unicode"
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

// DecodeJSON decodes a document as clients send it, for a variable of [AnyType]: see HTTP
// requests in the package comment. A name that is twice in one object, text that is not UTF-8
// and a second value are errors. So is a number next to zero (below 1e-307): no float64 has it
// exactly, and each takes strconv 20 µs and more, which is seconds for a megabyte of them.
// Otherwise decoding costs about what encoding/json costs a handler.
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
		number := fromJSONNumber(t)
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

// jsonObject is an object of JSON as a client sent it; see [DecodeJSON].
//
// A handler with encoding/json takes ID, Id and even names with the Kelvin sign for its
// field id, and which names it knows cannot be known here. So the names of an object count
// as they are folded, for everything that an expression can do with it.
type jsonObject map[string]member

// MarshalJSON implements [json.Marshaler]: the object as it was sent, for those who show
// a request.
func (o jsonObject) MarshalJSON() ([]byte, error) {
	sent := make(map[string]any, len(o))
	for _, m := range o {
		sent[m.name] = m.value
	}
	return json.Marshal(sent)
}

// member is a name as it was sent, and its value.
type member struct {
	name  string
	value any
}

// foldName maps the names that encoding/json takes for the same field to one text,
// which is one of them, in lower case.
func foldName(name string) string {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			return strings.Map(foldRune, name)
		}
	}
	return name
}

// foldRune is one of the characters that are the same but for their case, the same for
// all of them: the lower case of the least one, as σ and ς have one upper case, or the
// least one where its lower case is another character for encoding/json, as that of İ.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	lower := unicode.ToLower(least)
	for f := unicode.SimpleFold(least); f != least; f = unicode.SimpleFold(f) {
		if f == lower {
			return lower
		}
	}
	return least
}

const errSpelling = `keys() cannot tell the names of an object of JSON that are not in lower case, because a handler ` +
	`may take them for others; write "name" in …, or give the body a type`
