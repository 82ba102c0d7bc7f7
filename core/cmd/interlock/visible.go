package main

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// visible is a stream for a terminal that gets visible characters only, besides new lines and tabs. Whatever else
// a key, a field or a file has is written as \u001b is in JSON: so it cannot move the cursor, change colours or
// turn the direction of text, and a string of JSON stays the same string. A write has whole characters.
type visible struct{ io.Writer }

// Write writes p as said above.
func (v visible) Write(p []byte) (int, error) {
	text := make([]byte, 0, len(p))
	for rest := p; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			text = fmt.Appendf(text, `\x%02x`, rest[0])
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			text = append(text, rest[:size]...)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				text = fmt.Appendf(text, `\u%04x`, unit)
			}
		}
		rest = rest[size:]
	}
	if _, err := v.Writer.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}
