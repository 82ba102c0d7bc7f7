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
	operands, ok := summands(tokens)
	if !ok {
		return []segment{s}
	}
	return s.cut(operands)
}

// summands splits the tokens of an expression that is nothing but a sum.
func summands(tokens []lexer.Token) (operands [][]lexer.Token, ok bool) {
	depth, start := 0, 0
	for i, t := range tokens {
		switch {
		case t.Kind == lexer.EOF || depth == 0 && t.Is(lexer.Operator, "+"):
			if i == start {
				return nil, false
			}
			operands = append(operands, tokens[start:i])
			start = i + 1
		case t.Kind == lexer.Bracket && isOpening(t):
			depth++
		case t.Kind == lexer.Bracket:
			depth--
		case t.Kind == lexer.Operator && depth == 0 && !isSelector(t):
			return nil, false
		}
	}
	return operands, true
}

func isOpening(t lexer.Token) bool { return t.Value == "(" || t.Value == "[" || t.Value == "{" }

// isText reports whether a token is a text that makes a difference as literal text,
// and can be some.
func isText(t lexer.Token) bool {
	return t.Kind == lexer.String && strings.Contains(t.Value, ":") && segment{text: t.Value}.checkLiteral() == nil
}

// cut makes segments of operands: literal text of those that are a text with a
// colon, and expressions of what is between them.
func (s segment) cut(operands [][]lexer.Token) []segment {
	var terms []segment
	open := false // the last term is an expression
	for _, operand := range operands {
		first, last := operand[0], operand[len(operand)-1]
		begin, end := byteOffset(s.text, first.From), byteOffset(s.text, last.To)
		switch {
		case len(operand) == 1 && isText(first):
			terms = append(terms, segment{template: s.template, text: first.Value, offset: s.offset + begin})
			open = false
		case open:
			term := &terms[len(terms)-1]
			term.text = s.text[term.offset-s.offset : end]
		default:
			terms = append(terms, segment{template: s.template, text: s.text[begin:end], isExpr: true, offset: s.offset + begin})
			open = true
		}
	}
	if len(terms) == 1 && open { // also keeps the white space around it
		return []segment{s}
	}
	return terms
}
