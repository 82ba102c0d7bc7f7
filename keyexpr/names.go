package keyexpr

import (
	"regexp"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

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
