package keyexpr

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/vm/runtime"
)

// search and ends are the prices of looking for a part anywhere in a text, and at one
// end of it.
func search(text, part string) int { return searchPrice(text, part) }

func ends(text, part string) int { return min(len(text), len(part)) / 8 }

// textIn is an operation on a text and a part of it.
func textIn[R any](work func(text, part string) int, f func(text, part string) R) meteredFunction {
	return func(e *evaluation, args []any) (any, error) {
		text, err := textArgument(args, 0)
		if err != nil {
			return nil, err
		}
		part, err := textArgument(args, 1)
		if err != nil {
			return nil, err
		}
		if err := e.spend(work(text, part), 0); err != nil {
			return nil, err
		}
		return f(text, part), nil
	}
}

// unlessNil makes an operator false where an operand is nil.
func unlessNil(f meteredFunction) meteredFunction {
	return func(e *evaluation, args []any) (any, error) {
		if args[0] == nil || args[1] == nil {
			return false, nil
		}
		return f(e, args)
	}
}

// orSpace makes a space of the second argument where there is none.
func orSpace(f meteredFunction) meteredFunction {
	return func(e *evaluation, args []any) (any, error) {
		if len(args) == 1 {
			args = []any{args[0], " "}
		}
		return f(e, args)
	}
}

func matches(e *evaluation, args []any) (any, error) {
	number, err := argument[int](args, 0, "a pattern")
	if err != nil {
		return nil, err
	}
	if args[1] == nil {
		return false, nil
	}
	text, err := textArgument(args, 1)
	if err != nil {
		return nil, err
	}
	p := &e.program.patterns[number]
	work := 300 + len(text)*(20+8*p.length)
	if err := e.spend(work, min(len(text)*p.length/8, 32<<10)); err != nil {
		return nil, err
	}
	return p.regexp.MatchString(text), nil
}

// add is + where an operand may be a text.
func add(e *evaluation, args []any) (any, error) {
	left, isText := args[0].(string)
	right, areTexts := args[1].(string)
	if !isText || !areTexts {
		return runtime.Add(args[0], args[1]), nil
	}
	size := len(left) + len(right)
	if err := e.spend(size/2, size); err != nil {
		return nil, err
	}
	return left + right, nil
}

func trim(e *evaluation, args []any) (any, error) {
	text, err := textArgument(args, 0)
	if err != nil {
		return nil, err
	}
	if len(args) == 1 {
		if err := e.spend(2*len(text)+8*wide(text), 0); err != nil {
			return nil, err
		}
		return strings.TrimSpace(text), nil
	}
	set, err := textArgument(args, 1)
	if err != nil {
		return nil, err
	}
	work := 2 * len(text)
	if wide(set) > 0 { // each character is looked up in the whole set
		work = len(text) * (10 + len(set)/8)
	}
	if err := e.spend(work+len(set), 0); err != nil {
		return nil, err
	}
	return strings.Trim(text, set), nil
}

func recase(f func(string) string) meteredFunction {
	return func(e *evaluation, args []any) (any, error) {
		text, err := textArgument(args, 0)
		if err != nil {
			return nil, err
		}
		extra := wide(text)
		if err := e.spend(3*len(text)+16*extra, len(text)+4*extra); err != nil {
			return nil, err
		}
		return f(text), nil
	}
}

// cut is split and splitAfter. A limit decides how much the language allocates, even
// if there are fewer parts.
func cut(f func(text, separator string, limit int) []string) meteredFunction {
	return func(e *evaluation, args []any) (any, error) {
		text, err := textArgument(args, 0)
		if err != nil {
			return nil, err
		}
		separator, err := textArgument(args, 1)
		if err != nil {
			return nil, err
		}
		limit, err := limitArgument(args, 2)
		if err != nil {
			return nil, err
		}
		if err := e.spend(2*searchPrice(text, separator), 0); err != nil {
			return nil, err
		}
		if parts := strings.Count(text, separator) + 1; limit < 0 || limit > parts {
			limit = parts
		}
		if err := e.spend(20*limit, 32*limit); err != nil {
			return nil, err
		}
		return f(text, separator, limit), nil
	}
}

// limitArgument is an optional number; without it there is no limit.
func limitArgument(args []any, i int) (int, error) {
	if len(args) <= i {
		return -1, nil
	}
	return argument[int](args, i, "an integer")
}

func replace(e *evaluation, args []any) (any, error) {
	var texts [3]string
	for i := range texts {
		var err error
		if texts[i], err = textArgument(args, i); err != nil {
			return nil, err
		}
	}
	limit, err := limitArgument(args, 3)
	if err != nil {
		return nil, err
	}
	text, before, after := texts[0], texts[1], texts[2]
	if err := e.spend(3*searchPrice(text, before), 0); err != nil {
		return nil, err
	}
	count := strings.Count(text, before)
	if limit >= 0 {
		count = min(count, limit)
	}
	size := len(text) + count*(len(after)-len(before))
	if err := e.spend(size/2+20*count, size); err != nil {
		return nil, err
	}
	return strings.Replace(text, before, after, limit), nil
}

func join(e *evaluation, args []any) (any, error) {
	glue := ""
	if len(args) == 2 {
		var err error
		if glue, err = textArgument(args, 1); err != nil {
			return nil, err
		}
	}
	count := listLength(args[0])
	if err := e.spend(20*count, 16*count); err != nil {
		return nil, err
	}
	list, ok := asStrings(args[0])
	if !ok {
		return nil, errors.New("join() needs a list of strings")
	}
	size := len(glue) * count
	for _, text := range list {
		size += len(text)
	}
	if err := e.spend(size/2, size); err != nil {
		return nil, err
	}
	return strings.Join(list, glue), nil
}

// asStrings is a list whose elements are all texts.
func asStrings(v any) ([]string, bool) {
	switch list := v.(type) {
	case []string:
		return list, true
	case []any:
		texts := make([]string, len(list))
		for i, element := range list {
			text, ok := element.(string)
			if !ok {
				return nil, false
			}
			texts[i] = text
		}
		return texts, true
	}
	return nil, false
}

func toBase64(e *evaluation, args []any) (any, error) {
	text, err := textArgument(args, 0)
	if err != nil {
		return nil, err
	}
	if err := e.spend(3*len(text), 4*len(text)); err != nil {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString([]byte(text)), nil
}

func fromBase64(e *evaluation, args []any) (any, error) {
	text, err := textArgument(args, 0)
	if err != nil {
		return nil, err
	}
	if err := e.spend(3*len(text), 2*len(text)); err != nil {
		return nil, err
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	return string(decoded), err
}

// length counts the characters of a text; a list knows its length.
func length(e *evaluation, args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		if err := e.spend(3*len(text), 0); err != nil {
			return nil, err
		}
	}
	return original("len", args)
}

// ofText is a function of a value whose price is that of its text, if it is one.
func ofText(price func(text string) int, f func(any) (any, error)) meteredFunction {
	return func(e *evaluation, args []any) (any, error) {
		text, _ := args[0].(string) //nolint:errcheck // others have none
		if number, ok := args[0].(json.Number); ok {
			text = number.String()
		}
		if err := e.spend(price(text), 0); err != nil {
			return nil, err
		}
		return f(args[0])
	}
}

// lengthPrice is that of looking at each byte of a text.
func lengthPrice(text string) int { return 2 * len(text) }

var errNoNumber = errors.New("float() cannot take a string that is no number")

// ownFloat reads decimal numbers only: the language's own float reads "0x1p-2", "inf"
// and "1_000", too, and shows in its error what is no number.
func ownFloat(v any) (any, error) {
	text, ok := v.(string)
	if !ok {
		return original("float", []any{v})
	}
	if !isDecimal(text) {
		return nil, errNoNumber
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, errNoNumber
	}
	return f, nil
}
