package keyexpr

import (
	"encoding/json"
)

// MaxLength returns a Format whose keys have at most n bytes, so that short texts test the limit.
func MaxLength(n int) Format { return Format{maxLength: n} }

// FromJSONNumber exports fromJSONNumber.
func FromJSONNumber(n json.Number) any { return fromJSONNumber(n) }
