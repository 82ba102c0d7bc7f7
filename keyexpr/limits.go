package keyexpr

import "fmt"

// Limits of templates, expressions and keys.
const (
	// DefaultMaxLength is the length of the longest key in bytes. A longer key is shortened.
	DefaultMaxLength = 512
	// DefaultMaxElements is the largest number of keys that one template, or all templates of a rule, yield.
	DefaultMaxElements = 100
	// MaxTemplateLength is the length of the longest template or condition in bytes.
	MaxTemplateLength = 4096
	// MaxNodes is the largest number of nodes in one expression. A node that is compared twice,
	// such as b in a < b < c, counts twice.
	MaxNodes = 200

	// MaxPrefixLength is the length of the longest prefix in bytes. It leaves room in a shortened
	// key for the hash and for a little of the text after the prefix.
	MaxPrefixLength = DefaultMaxLength - len(hashMark) - hashDigits - 14
)

// Limits of the values that an expression computes with. Every operation is linear in its
// operands, and a predicate runs once for each element, so these limits bound time and memory.
const (
	// maxText is the length in bytes of the longest text that a function takes or that becomes
	// part of a key.
	maxText = 4 << 10
	// maxCollection is the largest number of elements in a list.
	maxCollection = 1000
	// maxRoom is the number of bytes of text that all the expressions of one template or
	// condition take and make together. A predicate can use one text once for each element.
	maxRoom = 256 << 10
)

// tooLongError reports a text of more than maxText bytes.
func tooLongError(subject string) *EvalError {
	return newEvalError(ReasonTooLong, subject, fmt.Sprintf("has a text of more than %d bytes", maxText))
}

// tooManyError reports a list or map of more than maxCollection elements.
func tooManyError(subject string) *EvalError {
	return newEvalError(ReasonTooMany, subject, fmt.Sprintf("has more than %d elements", maxCollection))
}
