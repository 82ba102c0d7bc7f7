package httpvars

import (
	"bytes"
	"encoding/json"
)

// checkNames refuses a typed body that has a name twice in one object, as reading an
// untyped one does: the type of the key and that of the handler need not be the same,
// nor need they agree about which value counts.
func (q *Request) checkNames(content []byte) error {
	if q.variables.body == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	_, err := untyped(d, 0)
	return err
}
