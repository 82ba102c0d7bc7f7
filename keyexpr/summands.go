package keyexpr

import (
	"strings"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// terms cuts the expression of a part at the texts with a colon that it adds:
// #{"order:" + path.id} is order:#{path.id}, as people write keys who come from
// languages without parts. A colon in a value is encoded, and these two would
// otherwise be different locks. Other expressions are one term, themselves.
func (s segment) terms(schema *Schema) []segment {
	r := &resolver{schema: schema, source: s}
	tokens, err := lexer.Lex(file.NewSource(r.text()))
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
