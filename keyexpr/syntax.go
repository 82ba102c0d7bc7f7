package keyexpr

import (
	"errors"
	"fmt"
	"io"
	"regexp"
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

// plainWords hides the names that the checker gave to things, and how the parser prints tokens.
func plainWords(message string) string {
	message = strings.ReplaceAll(message, argumentAlias, argumentName)
	message = strings.TrimPrefix(message, "compilation failed: ")
	if message == "unexpected token EOF" {
		return "the expression ends too early"
	}
	return tokenKind.ReplaceAllString(message, "$1")
}

// tokenKind is how the parser prints a token.
var tokenKind = regexp.MustCompile(`(?:Operator|Bracket|Identifier|Number|String|Bytes)\((".*")\)`)

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// terms cuts the expression of a part at the texts with a colon that it adds:
// #{"order:" + path.id} is order:#{path.id}, as people write keys who come from
// languages without parts. A colon in a value is encoded, and these two would
// otherwise be different locks. Other expressions are one term, themselves.
func (s segment) terms(schema *Schema) []segment {
	tokens, err := lexer.Lex(file.NewSource(schema.renamed(s.text)))
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
			terms = s.add(terms, tokens[start:i])
			start = i + 1
		case t.Kind == lexer.Bracket && isOpening(t):
			depth++
		case t.Kind == lexer.Bracket:
			depth--
		case t.Kind == lexer.Operator && depth == 0 && !isSelector(t): // it is more than a sum
			return []segment{s}
		}
	}
	if len(terms) == 1 && terms[0].isExpr { // also keeps the white space around it
		return []segment{s}
	}
	return terms
}

func isOpening(t lexer.Token) bool { return t.Value == "(" || t.Value == "[" || t.Value == "{" }

// isText reports whether a token is a text that makes a difference as literal text,
// and can be some.
func isText(t lexer.Token) bool {
	return t.Kind == lexer.String && strings.Contains(t.Value, ":") && segment{text: t.Value}.checkLiteral() == nil
}

// add appends an operand: literal text if it is a text with a colon, else an expression,
// one with that before it.
func (s segment) add(terms []segment, operand []lexer.Token) []segment {
	first, last := operand[0], operand[len(operand)-1]
	begin, end := byteOffset(s.text, first.From), byteOffset(s.text, last.To)
	term := segment{template: s.template, text: s.text[begin:end], isExpr: true, offset: s.offset + begin}
	switch n := len(terms); {
	case len(operand) == 1 && isText(first):
		term.text, term.isExpr = first.Value, false
	case n > 0 && terms[n-1].isExpr:
		terms[n-1].text = s.text[terms[n-1].offset-s.offset : end]
		return terms
	}
	return append(terms, term)
}

// reservedNames are words of the expression language. The word in is one too,
// but may be a variable: see renameArgument.
var reservedNames = map[string]bool{ //nolint:gochecknoglobals // a table that is only read
	"true": true, "false": true, "nil": true, "not": true, "or": true, "and": true,
	"matches": true, "contains": true, "startsWith": true, "endsWith": true, "let": true,
	"if": true, "else": true,
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// argumentAlias stands for the variable in, which is an operator of the
// language. It has as many characters, so that positions stay right.
const argumentAlias = "ɪn"

// renameArgument replaces the word in by its alias wherever an operand stands,
// that is at the start, after an operator or an opening bracket.
func (s *Schema) renamed(source string) string {
	if _, ok := s.slots[argumentName]; ok {
		return renameArgument(source)
	}
	return source
}

func renameArgument(source string) string {
	tokens, err := lexer.Lex(file.NewSource(source))
	if err != nil {
		return source
	}
	runes := []rune(source)
	operand := true // an operand may come next
	for i, t := range tokens {
		isWord := t.Is(lexer.Operator, "in") && !(i > 0 && isSelector(tokens[i-1]))
		switch {
		case isWord && operand:
			copy(runes[t.From:], []rune(argumentAlias))
			operand = false
		case t.Is(lexer.Operator, "#"):
			operand = false
		case t.Is(lexer.Operator, "not"):
			// Keeps what it was: "x not in y" and "not in.Flag" differ by it.
		case t.Kind == lexer.Operator:
			operand = !(i > 0 && isSelector(tokens[i-1]))
		case t.Kind == lexer.Bracket:
			operand = isOpening(t)
		default:
			operand = false
		}
	}
	return string(runes)
}

func isSelector(t lexer.Token) bool {
	return t.Is(lexer.Operator, ".") || t.Is(lexer.Operator, "?.")
}
