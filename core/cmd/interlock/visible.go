package main

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// visible passes visible characters, new lines and tabs on to a terminal. It writes every other character as JSON
// does, such as \u001b: a key, a field or a file cannot move the cursor, change colours or turn the direction of
// text, and a string of JSON stays the same string.
type visible struct{ io.Writer }

// Write writes p, which has to end with a whole character.
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
