package keyexpr

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is one problem of a template or condition, found when it is compiled.
// Several problems of one template are joined; errors.AsType finds the first.
type Error struct {
	// Template is the source as it was given.
	Template string
	// Line and Column are where the problem starts, both from 1; columns count
	// characters, not bytes.
	Line, Column int
	// Message says what is wrong.
	Message string
	// Suggestion is what to write instead, empty if there is nothing to suggest.
	Suggestion string
	// Unknown is the name that nothing has, if that is what is wrong: one of a variable,
	// or one of an entry of the variable Of, such as id of path.
	Unknown, Of string
}

// Error returns the position, the message, the line with a caret under the
// problem, and the suggestion.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "keyexpr: %d:%d: %s", e.Line, e.Column, e.Message)
	line := e.line()
	if line != "" {
		fmt.Fprintf(&b, "\n  | %s\n  | %s^", line, strings.Repeat(" ", e.Column-1))
	}
	if e.Suggestion != "" {
		fmt.Fprintf(&b, "\n  write %s", e.Suggestion)
	}
	return b.String()
}

// line is the line of the template with the problem. What a terminal would take for a
// command, or would not show, is one visible character, so that the caret stays in place.
func (e *Error) line() string {
	lines := strings.Split(e.Template, "\n")
	if e.Line < 1 || e.Line > len(lines) {
		return ""
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case r == '\t':
			return ' '
		default:
			return unicode.ReplacementChar
		}
	}, lines[e.Line-1])
}

// at returns the problem at a byte offset of the source.
func at(source string, offset int, message, suggestion string) *Error {
	before := source[:min(offset, len(source))]
	start := strings.LastIndexByte(before, '\n') + 1
	return &Error{
		Template:   source,
		Line:       strings.Count(before, "\n") + 1,
		Column:     utf8.RuneCountInString(before[start:]) + 1,
		Message:    message,
		Suggestion: suggestion,
	}
}
