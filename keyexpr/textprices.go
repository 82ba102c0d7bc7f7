package keyexpr

import (
	"encoding/json"
	"strings"
)

// textAt is an argument that is a text or a long integer, or nothing.
func textAt(args []any, i int) string {
	if i >= len(args) {
		return ""
	}
	return asText(args[i])
}

func asText(v any) string {
	switch text := v.(type) {
	case string:
		return text
	case json.Number:
		return text.String()
	}
	return ""
}

// perByte is the price of an operation that looks at each byte of a text.
func perByte(work, bytes int) func(args []any) price {
	return func(args []any) price { return price{work, bytes}.times(len(textAt(args, 0))) }
}

// searching is that of looking for a part in a text, a number of times. Comparing can
// begin at every position and fail at the end of the part each time, so a long part
// costs more.
func searching(times int) func(args []any) price {
	return func(args []any) price {
		text, part := textAt(args, 0), textAt(args, 1)
		return price{times * (20 + len(text)*(2+len(part)/64)), 0}
	}
}

// endsPrice is that of looking for a part at one end of a text.
func endsPrice(args []any) price {
	return price{min(len(textAt(args, 0)), len(textAt(args, 1))) / 8, 0}
}

// sumPrice is that of +, where both operands are texts.
func sumPrice(args []any) price {
	left, isText := args[0].(string)
	right, areTexts := args[1].(string)
	if !isText || !areTexts {
		return price{}
	}
	size := len(left) + len(right)
	return price{size / 2, size}
}

// perWide is what each byte of a character outside ASCII costs more.
func perWide(work, bytes int) func(args []any) price {
	return func(args []any) price { return price{work, bytes}.times(wide(textAt(args, 0))) }
}

// trimPrice is that of looking at all of a text, and of reading the set.
func trimPrice(args []any) price { return price{2*len(textAt(args, 0)) + len(textAt(args, 1)), 0} }

// trimWidePrice is what characters outside ASCII cost more: each one of the text without
// a set, and with one in it each of the text, which is looked up in all of the set.
func trimWidePrice(args []any) price {
	text, set := textAt(args, 0), textAt(args, 1)
	switch {
	case len(args) == 1:
		return price{8 * wide(text), 0}
	case wide(set) > 0:
		return price{len(text) * (8 + len(set)/8), 0}
	}
	return price{}
}

// splitPrice is that of the parts of a text, which are counted. The language allocates
// for a limit even if there are fewer.
func splitPrice(args []any) price {
	text := textAt(args, 0)
	var parts int
	if limit, limited := limitOf(args, 2); limited {
		parts = min(limit, len(text)+1)
	} else {
		parts = strings.Count(text, textAt(args, 1)) + 1
	}
	return price{70, 48}.times(parts)
}

// limitOf is an argument that limits something, if it does.
func limitOf(args []any, i int) (limit int, limited bool) {
	if i < len(args) {
		limit, _ = args[i].(int) //nolint:errcheck // it has been admitted
		return limit, limit >= 0
	}
	return 0, false
}

func replacePrice(args []any) price {
	text, before, after := textAt(args, 0), textAt(args, 1), textAt(args, 2)
	count := strings.Count(text, before)
	if limit, limited := limitOf(args, 3); limited {
		count = min(count, limit)
	}
	size := len(text) + count*(len(after)-len(before))
	return price{size/2 + 20*count, size}
}

func joinPrice(args []any) price {
	size := len(textAt(args, 1))*len(asList(args[0])) + textLength(args[0])
	return price{size / 2, size}
}

func floatPrice(args []any) price { return price{numberPrice(textAt(args, 0)), 0} }

// numberPrice is that of reading a text as a float. A few bytes can take long: those of
// a number in between two of the smallest floats are multiplied out to 700 digits.
func numberPrice(text string) int {
	switch {
	case !isDecimal(text):
		return len(text)
	case len(text) > 40 || strings.ContainsAny(text, "eE"):
		return 40_000 + 6*len(text)
	case len(text) > 15:
		return 2_000
	}
	return 100
}

// isDecimal reports whether a text has nothing but the characters of a decimal number.
func isDecimal(text string) bool {
	return text != "" && strings.Trim(text, "0123456789+-.eE") == ""
}

// wide counts the bytes of characters outside ASCII, which cost more to look at.
func wide(text string) int {
	count := 0
	for i := range len(text) {
		count += int(text[i] >> 7)
	}
	return count
}
