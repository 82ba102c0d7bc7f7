package httpvars

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/interlock-go/interlock/keyexpr"
)

func (q *Request) decodeBody() (any, error) {
	content, err := q.content(isJSON, "application/json")
	if err != nil || len(content) == 0 {
		return nil, err
	}
	value, err := keyexpr.DecodeJSON(content)
	if err == nil && q.variables.body != nil {
		value, err = q.typed(content)
	}
	if err != nil {
		return nil, badBody("needs a body of JSON", err)
	}
	return value, nil
}

// typed decodes a body into its type. That no object has a name twice is checked
// before, as in an untyped one: the type of the key and that of the handler need not be
// the same, nor need they agree about which value counts.
func (q *Request) typed(content []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
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
