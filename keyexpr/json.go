package keyexpr

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxJSONDepth is the largest depth to which a document may be nested.
const maxJSONDepth = 256

var (
	errNotUTF8  = errors.New("it is not valid UTF-8")
	errTooDeep  = errors.New("it is nested too deeply")
	errTwice    = errors.New("an object has a name twice (upper and lower case are the same)")
	errMore     = errors.New("there is more than one value")
	errCutOff   = errors.New("it is empty or ends too early")
	errTooSmall = errors.New("it has a number that is too small to be exact")
)

// DecodeJSON decodes a document from a client, for a variable of [AnyType]. The section HTTP
// requests of the package comment describes the rules. These are errors:
//
//   - a name that occurs twice in one object;
//   - text that is not UTF-8;
//   - a second value after the first;
//   - a number close to zero (below 1e-307). No float64 represents it exactly, and strconv needs 20
//     µs or more for each, which is seconds for a megabyte of such numbers.
//
// Otherwise decoding costs about as much as encoding/json costs a handler.
func DecodeJSON(document []byte) (any, error) {
	if !utf8.Valid(document) {
		return nil, errNotUTF8
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	value, err := decodeValue(d, 0)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), err.Error() == "unexpected end of JSON input":
		return nil, errCutOff // which of the three it is depends on the version of Go
	default:
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errMore, err)
	}
	return value, nil
}

// DecodeJSONAs decodes a document like [DecodeJSON] and then into a new value of type t, as encoding/json does. It returns a
// pointer to that value. If t is nil, it returns the result of DecodeJSON. Its errors quote no value of the document.
func DecodeJSONAs(document []byte, t reflect.Type) (any, error) {
	value, err := DecodeJSON(document) // refuses a repeated name, of which t may take the other value
	if err != nil || t == nil {
		return value, err
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	target := reflect.New(t)
	if err := d.Decode(target.Interface()); err != nil {
		return nil, mismatch(err, t)
	}
	return target.Interface(), nil
}

// mismatch returns the error for a document that encoding/json has not decoded into a t because of err. It does not wrap
// err, which may quote the document: errors of [time.Time], [json.Number] and of methods of the program do.
func mismatch(err error, t reflect.Type) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if field := fieldPath(t, wrong.Field); field != "" {
			return errors.New("the field " + field + " is not of type " + wrong.Type.String())
		}
	}
	return errors.New("the document is not of type " + t.String())
}

// fieldPath returns the names of the fields of t on a path of encoding/json, up to the first key of a map. From Go 1.27 on, such
// a path also has keys of maps, indexes, and names as the document writes them.
func fieldPath(t reflect.Type, path string) string {
	var names []string
	for step := range strings.SplitSeq(path, ".") {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			t = t.Elem()
		}
		if strings.Trim(step, "0123456789") == "" {
			continue // an index
		}
		if t.Kind() != reflect.Struct {
			break
		}
		fields := jsonFields(t)
		known := slices.Sorted(maps.Keys(fields))
		i := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(name, step) })
		if i < 0 {
			break
		}
		names, t = append(names, known[i]), fields[known[i]].typ
	}
	return strings.Join(names, ".")
}

// decodeValue decodes one value token by token. If it decoded the value as a whole, encoding/json
// would silently keep the last of several equal names.
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
		if tooSmall(t.String(), number) { // stop at the first one, because parsing each is slow
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
		name, _ := token.(string) //nolint:errcheck // the decoder returns strings as names
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

// tooSmall reports whether a JSON number is close to zero but not zero.
func tooSmall(text string, number any) bool {
	if f, ok := number.(float64); !ok || math.Abs(f) >= 1e-307 {
		return false
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return strings.ContainsAny(mantissa, "123456789")
}
