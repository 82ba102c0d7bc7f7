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

// opening begins a part of a template.
const opening = "#{"

// segment is a stretch of literal text, or the expression of one part.
type segment struct {
	template string
	text     string
	isExpr   bool
	offset   int // offset of text in the template, in bytes
}

// problem returns a problem at a byte offset of the text.
func (s segment) problem(offset int, message, suggestion string) *Error {
	return problemAt(s.template, s.offset+offset, message, suggestion)
}

// syntaxProblem returns the problem that an error of the lexer or parser reports.
func (s segment) syntaxProblem(err error) *Error {
	if alias, ok := errors.AsType[*aliasError](err); ok {
		problem := s.problem(byteOffset(s.text, alias.offset), alias.message, "")
		problem.Unknown = argumentAlias
		return problem
	}
	if positioned, ok := errors.AsType[*file.Error](err); ok {
		message := plainWords(positioned.Message)
		if message == endsTooEarly {
			message += missingAtEnd(s.text)
		}
		return s.problem(byteOffset(s.text, positioned.From), message, "")
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return s.problem(0, plainWords(line), "")
}

// split cuts a template into segments. It stops at the first problem, because it cannot tell
// parts from literal text after that.
func split(template string) ([]segment, *Error) {
	var segments []segment
	for pos := 0; pos < len(template); {
		i := strings.Index(template[pos:], opening)
		if i < 0 {
			return append(segments, segment{template: template, text: template[pos:], offset: pos}), nil
		}
		hash := pos + i
		if hash > 0 && template[hash-1] == '#' {
			return nil, problemAt(template, hash-1, `"##{" is not an escape`,
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

// closing returns the offset of the brace that closes the part at the start of the text. The
// lexer of the language separates braces from the contents of strings and comments.
func (s segment) closing() (int, *Error) {
	lex := lexer.New()
	lex.Reset(file.NewSource(s.text))
	for depth := 0; ; {
		token, err := lex.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, s.lexProblem(err)
		}
		if err != nil || token.Kind == lexer.EOF {
			return 0, s.problem(-len(opening), "the part is not closed", `"}" after the expression`)
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

func (s segment) lexProblem(err error) *Error {
	positioned, ok := errors.AsType[*file.Error](err)
	if ok && strings.HasPrefix(s.text[byteOffset(s.text, positioned.From):], "@") {
		return s.problem(byteOffset(s.text, positioned.From), "beans (@name) are not known here", "the name of a registered variable")
	}
	return s.syntaxProblem(err)
}

// checkLiteral reports text that a key cannot contain.
func (s segment) checkLiteral() *Error {
	for i, r := range s.text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s.text[i:]); size <= 1 {
				return s.problem(i, "the text is not valid UTF-8", "")
			}
		}
		if !unicode.IsPrint(r) {
			kind := "invisible"
			if unicode.IsControl(r) {
				kind = "control"
			}
			return s.problem(i, fmt.Sprintf("the %s character %U cannot be part of a key", kind, r), "")
		}
	}
	if i := strings.Index(s.text, hashMark); i >= 0 {
		return s.problem(i, fmt.Sprintf("%q marks the hash of an overlong key and cannot be literal text", hashMark), "")
	}
	return nil
}

// terms splits a sum where an operand is a literal text with a colon, so that #{"order:" + path.id}
// is order:#{path.id}. It returns any other expression as one term. Users of languages without
// parts write keys as sums. If the colon were encoded as part of a value, the two templates would
// yield different locks.
func (s segment) terms(schema *Schema) []segment {
	tokens, err := tokens(s.text, schema)
	if err != nil {
		return []segment{s}
	}
	var terms []segment
	depth, start := 0, 0
	for i, t := range tokens {
		switch {
		case t.Kind == lexer.EOF || depth == 0 && t.Is(lexer.Operator, "+"):
			if i == start {
				return []segment{s}
			}
			terms = s.appendTerm(terms, tokens[start:i])
			start = i + 1
		case t.Kind == lexer.Bracket && isOpening(t):
			depth++
		case t.Kind == lexer.Bracket:
			depth--
		case t.Kind == lexer.Operator && depth == 0 && !isSelector(t): // the expression is not only a sum
			return []segment{s}
		}
	}
	if len(terms) == 1 && terms[0].isExpr { // s also has the white space around the term
		return []segment{s}
	}
	return terms
}

// appendTerm appends an operand of a sum. A text with a colon becomes literal text. Another
// operand becomes an expression, together with the expression before it.
func (s segment) appendTerm(terms []segment, operand []lexer.Token) []segment {
	first, last := operand[0], operand[len(operand)-1]
	begin, end := byteOffset(s.text, first.From), byteOffset(s.text, last.To)
	term := segment{template: s.template, text: s.text[begin:end], isExpr: true, offset: s.offset + begin}
	switch n := len(terms); {
	case len(operand) == 1 && isLiteralText(first):
		term.text, term.isExpr = first.Value, false
	case n > 0 && terms[n-1].isExpr:
		terms[n-1].text = s.text[terms[n-1].offset-s.offset : end]
		return terms
	}
	return append(terms, term)
}

// isLiteralText reports whether a token is a text with a colon that can be literal text.
func isLiteralText(t lexer.Token) bool {
	return t.Kind == lexer.String && strings.Contains(t.Value, ":") && segment{text: t.Value}.checkLiteral() == nil
}
