package keyexpr

// Env supplies the values of one request to templates and conditions. Slots
// are those of the [Schema] the template was compiled against.
//
// Only what a template uses is asked for, and it may be asked for several
// times (by several parts, rules and conditions), so an Env keeps what is
// costly to compute. One goroutine uses an Env at a time. An error that is no
// *[EvalError] is reported as one with [ReasonInternal].
type Env interface {
	// Value returns the value of the variable in slot, of the kind its [Type]
	// describes. Nil is missing, or unset for a registered variable.
	Value(slot int) (any, error)

	// Item returns the i-th value of a keyed variable's entry, and how many
	// values the entry has. Zero is missing; i is ignored where count is not
	// greater than i.
	Item(slot int, key string, i int) (value string, count int, err error)
}

// Values is an [Env] of fixed values by slot. A keyed variable's value is a
// map[string][]string. It suits tests and schemas made by [Argument]; for a
// large struct store a pointer to it.
type Values []any

// Value implements [Env].
func (v Values) Value(slot int) (any, error) {
	if slot >= len(v) {
		return nil, nil //nolint:nilnil // nil is missing
	}
	return v[slot], nil
}

// Item implements [Env].
func (v Values) Item(slot int, key string, i int) (string, int, error) {
	if slot >= len(v) {
		return "", 0, nil
	}
	entries, _ := v[slot].(map[string][]string) //nolint:errcheck // nil has no entries
	values := entries[key]
	if i >= len(values) {
		return "", len(values), nil
	}
	return values[i], len(values), nil
}
