package keyexpr

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/parser/lexer"
)

// argumentAlias replaces the name of the variable in, which is an operator of the language. Both
// have two characters, so that positions stay correct.
const argumentAlias = "ɪn"

// parse returns the syntax tree of an expression. Package expr parses it and defines its limits
// and messages; plainWords rewrites the messages.
func parse(text string, schema *Schema) (*parser.Tree, error) {
	source, err := renameArgument(text, schema)
	if err != nil {
		return nil, err
	}
	config := conf.CreateNew()
	config.MaxNodes = MaxNodes
	return parser.ParseWithConfig(source, config)
}

// tokens returns the tokens of an expression.
func tokens(text string, schema *Schema) ([]lexer.Token, error) {
	source, err := renameArgument(text, schema)
	if err != nil {
		return nil, err
	}
	return lexer.Lex(file.NewSource(source))
}

// aliasError reports an expression that contains the alias of in itself.
type aliasError struct {
	offset  int // in runes
	message string
}

func (e *aliasError) Error() string { return e.message }

// checkAlias reports the alias of in where it would be a variable.
func checkAlias(source string, schema *Schema) error {
	if !strings.Contains(source, argumentAlias) {
		return nil
	}
	tokens, err := lexer.Lex(file.NewSource(source))
	if err != nil {
		return err
	}
	for i, t := range tokens {
		if t.Is(lexer.Identifier, argumentAlias) && !(i > 0 && isSelector(tokens[i-1])) {
			return &aliasError{t.From, "unknown name " + argumentAlias + ": " + listForMessage(schema.Variables())}
		}
	}
	return nil
}

// renameArgument replaces the word in by its alias wherever an operand is expected: at the start,
// and after an operator or an opening bracket. It does so only if in is a variable of the schema.
func renameArgument(source string, schema *Schema) (string, error) {
	if err := checkAlias(source, schema); err != nil {
		return "", err
	}
	if _, ok := schema.slots[argumentName]; !ok {
		return source, nil
	}
	tokens, err := lexer.Lex(file.NewSource(source))
	if err != nil {
		return "", err
	}
	runes := []rune(source)
	operand := true // an operand is expected
	for i, t := range tokens {
		isWord := t.Is(lexer.Operator, "in") && !(i > 0 && isSelector(tokens[i-1]))
		switch {
		case isWord && operand:
			copy(runes[t.From:], []rune(argumentAlias))
			operand = false
		case t.Is(lexer.Operator, "#"):
			operand = false
		case t.Is(lexer.Operator, "not"):
			// Changes nothing, because of "x not in y" and "not in.Flag".
		case t.Kind == lexer.Operator:
			operand = !(i > 0 && isSelector(tokens[i-1]))
		case t.Kind == lexer.Bracket:
			operand = isOpening(t)
		default:
			operand = false
		}
	}
	return string(runes), nil
}

func isSelector(t lexer.Token) bool {
	return t.Is(lexer.Operator, ".") || t.Is(lexer.Operator, "?.")
}

func isOpening(t lexer.Token) bool { return t.Value == "(" || t.Value == "[" || t.Value == "{" }

// byteOffset converts an offset in runes, which the parser counts, to an offset in bytes.
func byteOffset(s string, runes int) int {
	for i := range s {
		if runes == 0 {
			return i
		}
		runes--
	}
	return len(s)
}

// plainWords rewrites a message of the parser: it removes the alias of in and the names of the
// kinds of tokens, and replaces messages that name neither the mistake nor the remedy.
func plainWords(message string) string {
	message = strings.ReplaceAll(message, argumentAlias, argumentName)
	message = strings.TrimPrefix(message, "compilation failed: ")
	switch message = tokenKind.ReplaceAllString(message, "$1"); message {
	case "unexpected token EOF", "unexpected end of expression":
		return endsTooEarly
	case "literal not terminated":
		return "the text has no closing quote"
	case `unexpected token "#"`:
		return "# is the element of a list, and known only inside map, filter, any and all"
	}
	return message
}

// endsTooEarly is the message for an expression that is only the beginning of one.
const endsTooEarly = "the expression ends too early"

// missingAtEnd returns the end of the message endsTooEarly, which names the missing text, or "" if
// that text is not known.
func missingAtEnd(text string) string {
	tokens, err := lexer.Lex(file.NewSource(text))
	if err != nil {
		return ""
	}
	closing := map[string]string{"(": ")", "[": "]", "{": "}"}
	var last lexer.Token
	var open []string
	choices := 0
	for _, t := range tokens {
		switch {
		case t.Kind == lexer.EOF:
			continue
		case t.Kind == lexer.Bracket && isOpening(t):
			open = append(open, closing[t.Value])
		case t.Kind == lexer.Bracket && len(open) > 0:
			open = open[:len(open)-1]
		case t.Is(lexer.Operator, "?"):
			choices++
		case t.Is(lexer.Operator, ":"):
			choices--
		}
		last = t
	}
	switch {
	case isSelector(last):
		return ": a name is missing after " + last.Value
	case last.Kind == lexer.Operator && last.Value != "if":
		return ": a value is missing after " + last.Value
	case len(open) > 0:
		return ": " + open[len(open)-1] + " is missing"
	case choices > 0:
		return ": : and a value are missing after ?"
	}
	return ""
}

// tokenKind matches a token in a message of the parser.
var tokenKind = regexp.MustCompile(`(?:Operator|Bracket|Identifier|Number|String|Bytes)\((".*")\)`)

// nodeCount counts the nodes of a tree. The parser shares b of a < b < c, so that a tree can
// have many more nodes than its memory suggests.
type nodeCount int

// Visit implements [ast.Visitor].
func (n *nodeCount) Visit(*ast.Node) {
	if *n++; *n > MaxNodes {
		panic(n)
	}
}

// isLarge reports whether a tree has more than MaxNodes nodes.
func isLarge(root *ast.Node) (large bool) {
	n := new(nodeCount)
	defer func() { large = *n > MaxNodes; _ = large && recover() != nil }()
	ast.Walk(root, n)
	return false
}

// sourceOf returns the source text of a node, for messages and suggestions.
func sourceOf(n ast.Node) string {
	return strings.ReplaceAll(n.String(), argumentAlias, argumentName)
}

// operandSourceOf returns the source of a node that a selector follows, in parentheses if the selector needs them.
func operandSourceOf(n ast.Node) string {
	switch n.(type) {
	case *ast.BinaryNode, *ast.UnaryNode, *ast.ConditionalNode:
		return "(" + sourceOf(n) + ")"
	}
	return sourceOf(n)
}

// textNode returns an operand converted to a text.
func textNode(n ast.Node) ast.Node {
	_, isInteger := integerOf(n)
	switch n.(type) {
	case *ast.FloatNode, *ast.BoolNode:
		return &ast.StringNode{Value: n.String()}
	}
	if isInteger {
		return &ast.StringNode{Value: n.String()}
	}
	return &ast.BuiltinNode{Name: "string", Arguments: []ast.Node{n}}
}

// numberNode returns the number that a literal text spells, or nil.
func numberNode(n ast.Node) ast.Node {
	text, ok := n.(*ast.StringNode)
	if !ok {
		return nil
	}
	if i, err := strconv.Atoi(text.Value); err == nil {
		return &ast.IntegerNode{Value: i}
	}
	if f, err := strconv.ParseFloat(text.Value, 64); err == nil && f-f == 0 {
		return &ast.FloatNode{Value: f}
	}
	return nil
}

// selectorOf returns the source that selects a name of a value.
func selectorOf(name string) string {
	if identifier.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

// selectorOfElement returns the source that selects a name of the element in a predicate.
func selectorOfElement(name string) string {
	if selector := selectorOf(name); selector[0] == '.' {
		return selector
	}
	return "#" + selectorOf(name)
}

// quoteName returns a name for a message. It quotes a name that is not an identifier, because the name may come from a
// literal text with any characters.
func quoteName(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

// variableOf returns the name of the variable that an identifier stands for.
func variableOf(x *ast.IdentifierNode) string {
	if x.Value == argumentAlias {
		return argumentName
	}
	return x.Value
}

// pathOf returns the variable and the names of a reference that consists of names only. It
// returns nil for other references.
func pathOf(n ast.Node) (variable *ast.IdentifierNode, names []string) {
	switch x := n.(type) {
	case *ast.IdentifierNode:
		return x, nil
	case *ast.MemberNode:
		name, ok := x.Property.(*ast.StringNode)
		if !ok {
			return nil, nil
		}
		variable, names = pathOf(x.Node)
		return variable, append(names, name.Value)
	}
	return nil, nil
}

// integerOf returns the value of a literal integer, which may have a sign.
func integerOf(n ast.Node) (value int, ok bool) {
	switch x := n.(type) {
	case *ast.IntegerNode:
		return x.Value, true
	case *ast.UnaryNode:
		value, ok = integerOf(x.Node)
		return -value, ok && x.Operator == "-"
	}
	return 0, false
}

func isNilNode(n ast.Node) bool {
	_, ok := n.(*ast.NilNode)
	return ok
}

// methodOf returns the name of the method that a call invokes.
func methodOf(callee ast.Node) string {
	if member, ok := callee.(*ast.MemberNode); ok {
		if name, ok := member.Property.(*ast.StringNode); ok {
			return name.Value
		}
	}
	return ""
}
