package keyexpr

import "encoding/json"

// MaxLength limits a key to n bytes, so that short texts show what becomes of long ones.
func MaxLength(n int) Format { return Format{maxLength: n} }

// FromJSONNumber shows what becomes of a number of JSON.
func FromJSONNumber(n json.Number) any { return fromJSONNumber(n) }
