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

// Reason says why a request yields no key. Adapters choose the status by it.
type Reason uint8

// The reasons. Except where noted the request is at fault.
const (
	// ReasonMissing: a value is absent or null.
	ReasonMissing Reason = iota + 1
	// ReasonEmpty: a value is the empty string, or a list has no elements.
	ReasonEmpty
	// ReasonWrongType: a value is no string, bool, integer or enum.
	ReasonWrongType
	// ReasonRepeated: a header, query or form value is given more than once.
	ReasonRepeated
	// ReasonTooMany: a list has more elements than allowed.
	ReasonTooMany
	// ReasonTooLong: a value is too long, all values of an expression together are, or a
	// key is, under [Format].Strict.
	ReasonTooLong
	// ReasonCharacter: a value begins or ends with white space, or would have to be
	// encoded under [Format].Strict.
	ReasonCharacter
	// ReasonBadBody: the body cannot be read or parsed.
	ReasonBadBody
	// ReasonTooLarge: the body is larger than allowed.
	ReasonTooLarge
	// ReasonUnsupportedMedia: the content type of the body is not the expected one.
	ReasonUnsupportedMedia
	// ReasonExpression: the expression failed for these values, such as an
	// index out of range or a division by zero.
	ReasonExpression
	// ReasonUnset: a registered variable has no value; the application is at
	// fault, typically because the lock is installed before authentication.
	ReasonUnset
	// ReasonInternal: a variable could not be computed; the application is at
	// fault.
	ReasonInternal
)

var reasonNames = [...]string{ //nolint:gochecknoglobals // a table that is only read
	ReasonMissing: "missing", ReasonEmpty: "empty", ReasonWrongType: "wrong_type",
	ReasonRepeated: "repeated", ReasonTooMany: "too_many", ReasonTooLong: "too_long",
	ReasonCharacter: "character", ReasonBadBody: "bad_body", ReasonTooLarge: "too_large",
	ReasonUnsupportedMedia: "unsupported_media", ReasonExpression: "expression",
	ReasonUnset: "unset", ReasonInternal: "internal",
}

// String returns a short stable name, such as "missing".
func (r Reason) String() string {
	if int(r) < len(reasonNames) && reasonNames[r] != "" {
		return reasonNames[r]
	}
	return "unknown"
}

// EvalError says why one request yields no key. Its text is for the operator's
// log and holds no value of the request.
type EvalError struct {
	// Reason classifies the failure.
	Reason Reason
	// Subject is the variable or expression that failed, such as header["X-Id"].
	Subject string
	// Detail says what is wrong with it and, where that helps, what to write.
	Detail string
	// Template is the source of the template or condition, if it is known.
	Template string
	// Err is the cause, if there is one.
	Err error
}

func failed(reason Reason, subject, detail string) *EvalError {
	return &EvalError{Reason: reason, Subject: subject, Detail: detail}
}

// Error implements error.
func (e *EvalError) Error() string {
	var b strings.Builder
	b.WriteString("keyexpr: ")
	if e.Template != "" {
		b.WriteString("key " + e.Template + ": ")
	}
	if e.Subject != "" {
		b.WriteString(e.Subject + " ")
	}
	b.WriteString(e.Detail)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *EvalError) Unwrap() error { return e.Err }
