package simulate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/keyexpr"
)

// Value is what a variable was in a request.
type Value struct{ Name, Text string }

// recorder is the [keyexpr.Env] of a request, and notes what is read of it.
type recorder struct {
	env    keyexpr.Env
	names  []string // by slot
	values []Value
}

func (r *recorder) Value(slot int) (any, error) {
	v, err := r.env.Value(slot)
	if err == nil {
		r.note(r.names[slot], text(v))
	}
	return v, err
}

func (r *recorder) Item(slot int, key string, i int) (string, int, error) {
	v, count, err := r.env.Item(slot, key, i)
	name := r.names[slot] + selector(key)
	switch {
	case err != nil:
	case count == 0:
		r.note(name, missing)
	case count == 1:
		r.note(name, text(v))
	default:
		r.note(fmt.Sprintf("%s[%d]", name, i), fmt.Sprintf("%s (of %d)", text(v), count))
	}
	return v, count, err
}

func (r *recorder) note(name, text string) {
	for _, v := range r.values {
		if v.Name == name {
			return
		}
	}
	r.values = append(r.values, Value{name, text})
}

const missing = "(missing)"

// text is a value on one line.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return missing
	case string:
		if v == "" || strconv.Quote(v) != `"`+v+`"` {
			return strconv.Quote(v)
		}
		return v
	case protoreflect.Message:
		document, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(v.Interface())
		if err != nil {
			return short(nil, err)
		}
		return short(json.Marshal(json.RawMessage(document))) // which also takes its varying spaces out
	default:
		return short(json.Marshal(v))
	}
}

// maxText bounds what is shown of a body.
const maxText = 200

func short(document []byte, err error) string {
	if err != nil {
		return "(" + err.Error() + ")"
	}
	if runes := []rune(string(document)); len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return string(document)
}

var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// selector is how a name is written after a variable.
func selector(name string) string {
	if identifier.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}
