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
	text   string
	isExpr bool
	offset int // of text, in bytes from the start of the template
}

// split cuts a template into segments. It stops at the first problem of the
// syntax, because what follows cannot be told apart from literal text.
func split(template string) ([]segment, *Error) {
	var segments []segment
	for pos := 0; pos < len(template); {
		i := strings.Index(template[pos:], opening)
		if i < 0 {
			return append(segments, segment{text: template[pos:], offset: pos}), nil
		}
		hash := pos + i
		if hash > 0 && template[hash-1] == '#' {
			return nil, at(template, hash-1, `"##{" is no escape`,
				`#{"#{"} for a literal "#{", or #{"#"} before a part for a literal "#"`)
		}
		if i > 0 {
			segments = append(segments, segment{text: template[pos:hash], offset: pos})
		}
		start := hash + len(opening)
		end, problem := closing(template, start)
		if problem != nil {
			return nil, problem
		}
		segments = append(segments, segment{text: template[start:end], isExpr: true, offset: start})
		pos = end + 1
	}
	return segments, nil
}

// closing returns the offset of the brace that ends the part whose expression
// begins at start. The language's own lexer decides what is a brace and what is
// part of a string or comment.
func closing(template string, start int) (int, *Error) {
	source := template[start:]
	lex := lexer.New()
	lex.Reset(file.NewSource(source))
	for depth := 0; ; {
		token, err := lex.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, lexError(template, start, err)
		}
		if err != nil || token.Kind == lexer.EOF {
			return 0, at(template, start-len(opening), "the part is not closed", `"}" after the expression`)
		}
		switch {
		case token.Is(lexer.Bracket, "{"):
			depth++
		case token.Is(lexer.Bracket, "}") && depth == 0:
			return start + byteOffset(source, token.From), nil
		case token.Is(lexer.Bracket, "}"):
			depth--
		}
	}
}

func lexError(template string, start int, err error) *Error {
	var positioned *file.Error
	if !errors.As(err, &positioned) {
		return at(template, start, firstLine(err.Error()), "")
	}
	offset := start + byteOffset(template[start:], positioned.From)
	if strings.HasPrefix(template[offset:], "@") {
		return at(template, offset, "beans (@name) are not known here", "the name of a registered variable")
	}
	return at(template, offset, positioned.Message, "")
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
func checkLiteral(template string, s segment) *Error {
	for i, r := range s.text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s.text[i:]); size <= 1 {
				return at(template, s.offset+i, "the text is not valid UTF-8", "")
			}
		}
		if unicode.IsControl(r) {
			return at(template, s.offset+i, fmt.Sprintf("the control character %U does not belong into a key", r), "")
		}
	}
	if i := strings.Index(s.text, hashMark); i >= 0 {
		return at(template, s.offset+i, fmt.Sprintf("%q marks the hash of an overlong key and cannot be literal text", hashMark), "")
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
