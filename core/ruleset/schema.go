package ruleset

import _ "embed"

//go:embed locks.schema.json
var schema string

// Schema is the JSON Schema (draft 2020-12) of a rule file, for editors. It finds
// most of what [Load] refuses in a single rule, but nothing that depends on other
// rules, on the program, or on the text itself, such as a value that YAML takes for
// a comment.
func Schema() []byte { return []byte(schema) }
