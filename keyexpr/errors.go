package keyexpr

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is one problem of a template or condition, found when it is compiled.
// Several problems of one template are joined; errors.AsType finds the first.
type Error struct {
	// Template is the source as the caller passed it.
	Template string
	// Line and Column are the position of the problem. Both count from 1; Column counts
	// characters, not bytes.
	Line, Column int
	// Message says what is wrong.
	Message string
	// Suggestion is what to write instead. It may be empty.
	Suggestion string
	// Unknown is a name in the template that the schema does not contain. It is empty for other
	// problems. If Of is set, Unknown is an entry of the variable Of, such as id of path.
	Unknown, Of string
}

// Error returns the position, the message, the line of the template with a caret below the
// problem, and the suggestion.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "keyexpr: %d:%d: %s", e.Line, e.Column, e.Message)
	line := e.visibleLine()
	if line != "" {
		fmt.Fprintf(&b, "\n  | %s\n  | %s^", line, strings.Repeat(" ", e.Column-1))
	}
	if e.Suggestion != "" {
		fmt.Fprintf(&b, "\n  write %s", visible(e.Suggestion))
	}
	return b.String()
}

// visibleLine returns the line of the template that has the problem, without invisible characters.
func (e *Error) visibleLine() string {
	lines := strings.Split(e.Template, "\n")
	if e.Line < 1 || e.Line > len(lines) {
		return ""
	}
	return visible(lines[e.Line-1])
}

// visible replaces each character that a terminal would interpret or hide with a visible one, so that the caret stays in
// place.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r) || r == '\n':
			return r
		case r == '\t':
			return ' '
		default:
			return unicode.ReplacementChar
		}
	}, text)
}

// problemAt returns a problem at a byte offset of the source.
func problemAt(source string, offset int, message, suggestion string) *Error {
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

// joinProblems returns an error that joins all the problems.
func joinProblems(problems []*Error) error {
	all := make([]error, len(problems))
	for i, p := range problems {
		all[i] = p
	}
	return errors.Join(all...)
}

// Reason classifies why a request yields no key. Adapters derive the status of the response from
// it.
type Reason uint8

// The reasons. The request is at fault unless the comment of the reason blames the application.
const (
	// ReasonMissing: a value is absent or null.
	ReasonMissing Reason = iota + 1
	// ReasonEmpty: a value is the empty string, or a list has no elements.
	ReasonEmpty
	// ReasonWrongType: a value is not a string, a bool, an integer or an enum.
	ReasonWrongType
	// ReasonRepeated: a header, query, cookie or form value is given more than once, or its name in
	// a spelling that only some handlers read.
	ReasonRepeated
	// ReasonTooMany: a list has more elements than allowed.
	ReasonTooMany
	// ReasonTooLong: one value is too long, the values of an expression together are too long,
	// or a key is too long under [Format].Strict.
	ReasonTooLong
	// ReasonCharacter: a value begins or ends with white space, or has a character that
	// [Format].Strict does not encode.
	ReasonCharacter
	// ReasonBadBody: the body cannot be read or parsed.
	ReasonBadBody
	// ReasonTooLarge: the body is larger than allowed.
	ReasonTooLarge
	// ReasonUnsupportedMedia: the content type of the body is not the expected one.
	ReasonUnsupportedMedia
	// ReasonExpression: the expression cannot be computed for these values, for example
	// because it divides by zero.
	ReasonExpression
	// ReasonUnset: a registered variable has no value. The application is at fault: often it
	// installs the lock before the authentication that sets the variable.
	ReasonUnset
	// ReasonInternal: a variable could not be computed. The application is at fault.
	ReasonInternal
)

var reasonNames = [...]string{ //nolint:gochecknoglobals // a table that is only read
	ReasonMissing: "missing", ReasonEmpty: "empty", ReasonWrongType: "wrong_type",
	ReasonRepeated: "repeated", ReasonTooMany: "too_many", ReasonTooLong: "too_long",
	ReasonCharacter: "character", ReasonBadBody: "bad_body", ReasonTooLarge: "too_large",
	ReasonUnsupportedMedia: "unsupported_media", ReasonExpression: "expression",
	ReasonUnset: "unset", ReasonInternal: "internal",
}

// String returns a short stable name, for example "missing".
func (r Reason) String() string {
	if int(r) < len(reasonNames) && reasonNames[r] != "" {
		return reasonNames[r]
	}
	return "unknown"
}

// EvalError reports why one request yields no key. Its message is written for the operator's log
// and contains no value of the request.
type EvalError struct {
	// Reason classifies the failure.
	Reason Reason
	// Subject is the variable or expression that failed, for example header["X-Id"].
	Subject string
	// Detail says what is wrong with the subject and, if that helps, what to write.
	Detail string
	// Template is the source of the template or condition, if it is known.
	Template string
	// Err is the cause. It may be nil.
	Err error
}

func newEvalError(reason Reason, subject, detail string) *EvalError {
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
