package keyexpr

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

const opening = "#{"

// segment is a stretch of literal text or the expression of one part.
type segment struct {
	template string
	text     string
	isExpr   bool
	offset   int // of text, in bytes from the start of the template
}

// at returns the problem at a byte offset of the text.
func (s segment) at(offset int, message, suggestion string) *Error {
	return at(s.template, s.offset+offset, message, suggestion)
}

// failed returns the problem that is an error of the language.
func (s segment) failed(err error) *Error {
	if positioned, ok := errors.AsType[*file.Error](err); ok {
		return s.at(byteOffset(s.text, positioned.From), plainWords(positioned.Message), "")
	}
	return s.at(0, plainWords(firstLine(err.Error())), "")
}

// split cuts a template into segments. It stops at the first problem of the
// syntax, because what follows cannot be told apart from literal text.
func split(template string) ([]segment, *Error) {
	var segments []segment
	for pos := 0; pos < len(template); {
		i := strings.Index(template[pos:], opening)
		if i < 0 {
			return append(segments, segment{template: template, text: template[pos:], offset: pos}), nil
		}
		hash := pos + i
		if hash > 0 && template[hash-1] == '#' {
			return nil, at(template, hash-1, `"##{" is no escape`,
				`#{"#{"} for a literal "#{", or #{"#"} before a part for a literal "#"`)
		}
		if i > 0 {
			segments = append(segments, segment{template: template, text: template[pos:hash], offset: pos})
		}
		part := segment{template: template, text: template[hash+len(opening):], isExpr: true, offset: hash + len(opening)}
		end, problem := part.closing()
		if problem != nil {
			return nil, problem
		}
		part.text = part.text[:end]
		segments = append(segments, part)
		pos = part.offset + end + 1
	}
	return segments, nil
}

// closing returns the offset of the brace that ends the part which the text begins
// with. The language's own lexer decides what is a brace and what is part of a string
// or comment.
func (s segment) closing() (int, *Error) {
	lex := lexer.New()
	lex.Reset(file.NewSource(s.text))
	for depth := 0; ; {
		token, err := lex.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, s.lexError(err)
		}
		if err != nil || token.Kind == lexer.EOF {
			return 0, s.at(-len(opening), "the part is not closed", `"}" after the expression`)
		}
		switch {
		case token.Is(lexer.Bracket, "{"):
			depth++
		case token.Is(lexer.Bracket, "}") && depth == 0:
			return byteOffset(s.text, token.From), nil
		case token.Is(lexer.Bracket, "}"):
			depth--
		}
	}
}

func (s segment) lexError(err error) *Error {
	positioned, ok := errors.AsType[*file.Error](err)
	if ok && strings.HasPrefix(s.text[byteOffset(s.text, positioned.From):], "@") {
		return s.at(byteOffset(s.text, positioned.From), "beans (@name) are not known here", "the name of a registered variable")
	}
	return s.failed(err)
}

// byteOffset converts an offset in runes, as the language counts.
func byteOffset(s string, runes int) int {
	for i := range s {
		if runes == 0 {
			return i
		}
		runes--
	}
	return len(s)
}

// checkLiteral refuses text that no key can hold.
func (s segment) checkLiteral() *Error {
	for i, r := range s.text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s.text[i:]); size <= 1 {
				return s.at(i, "the text is not valid UTF-8", "")
			}
		}
		if !unicode.IsPrint(r) {
			kind := "invisible"
			if unicode.IsControl(r) {
				kind = "control"
			}
			return s.at(i, fmt.Sprintf("the %s character %U does not belong into a key", kind, r), "")
		}
	}
	if i := strings.Index(s.text, hashMark); i >= 0 {
		return s.at(i, fmt.Sprintf("%q marks the hash of an overlong key and cannot be literal text", hashMark), "")
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
