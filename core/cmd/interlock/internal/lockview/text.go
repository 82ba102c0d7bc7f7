// Package lockview shows locks as they are in Redis: in tables for people and in JSON for programs.
package lockview

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// longest is how many characters of a key or a field tables show.
const longest = 100

// Text is a text from Redis for a terminal: in quotes if it has anything but visible characters, or
// could be taken for quoted, and cut if it is long. Nothing in it can move the cursor or change colours.
func Text(s string) string {
	if strings.ContainsFunc(s, hidden) || !utf8.ValidString(s) || s == "" || s == "-" {
		s = strconv.Quote(s)
	}
	runes := 0
	for i := range s {
		if runes++; runes > longest {
			return fmt.Sprintf("%s… (%d bytes)", s[:i], len(s))
		}
	}
	return s
}

// hidden reports whether a character is none that a reader sees and a table can have.
func hidden(r rune) bool {
	return r == '"' || r == '\\' || unicode.IsSpace(r) || !unicode.IsPrint(r) || unicode.Is(unicode.M, r)
}

// Left is what is left of a lease, for people, rounded up: to the tenth of a second below 10 s, to the second
// below an hour, then to the minute.
func Left(d time.Duration) string {
	step := time.Second
	switch {
	case d < 0:
		return "no end"
	case d == 0:
		return "-"
	case d < 10*time.Second:
		step = time.Second / 10
	case d >= time.Hour:
		step = time.Minute
	}
	d = (d + step - 1).Truncate(step)
	if step == time.Minute {
		return strings.TrimSuffix(d.String(), "0s")
	}
	return d.String()
}
