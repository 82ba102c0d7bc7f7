package keyexpr

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

func ownString(v any) (any, error) {
	switch x := v.(type) {
	case string:
		return x, nil
	case bool, int, uint64:
		return fmt.Sprint(x), nil
	case json.Number:
		return x.String(), nil
	}
	return nil, fmt.Errorf("string() cannot take %s", describe(v))
}

// ownInt refuses what does not convert exactly.
func ownInt(v any) (any, error) {
	switch x := v.(type) {
	case int:
		return x, nil
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int(x), nil
		}
	case string:
		if i, err := strconv.Atoi(x); err == nil {
			return i, nil
		}
	}
	return nil, fmt.Errorf("int() cannot take %s that is no integer", describe(v))
}

// keysOf are the names of an object, as far as they are sure.
func keysOf(e *evaluation, args []any) (any, error) {
	switch m := args[0].(type) {
	case jsonObject:
		return e.program.spelling.names(m)
	case map[string]any:
		return boxed(slices.Sorted(maps.Keys(m))), nil
	}
	return nil, errTooMany
}

// ownValues are in the order of the keys.
func ownValues(v any) (any, error) {
	switch m := v.(type) {
	case jsonObject:
		return inOrder(m, func(m member) any { return m.value }), nil
	case map[string]any:
		return inOrder(m, normalize), nil
	}
	return nil, errTooMany
}

func inOrder[K ~string, V any](object map[K]V, value func(V) any) []any {
	list := make([]any, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		list = append(list, value(object[name]))
	}
	return list
}

var errNoNumber = errors.New("float() cannot take a string that is no number")

// ownFloat reads decimal numbers only: the language's own float reads "0x1p-2", "inf"
// and "1_000", too, and shows in its error what is no number.
func ownFloat(v any) (any, error) {
	text, ok := v.(string)
	if !ok {
		return original("float", []any{v})
	}
	if isDecimal(text) {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f, nil
		}
	}
	return nil, errNoNumber
}
