package keyexpr

import (
	"cmp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// This file decides which suggestions a user sees. A suggestion that replaces a part of an expression is compiled in its
// place first.

// replacement is an expression to write instead of a node.
type replacement struct {
	node ast.Node
	text string
	// reference is set if text corrects a name in a reference. Such a text is also suggested if the expression around the
	// reference has another problem that the wrong name has hidden.
	reference ast.Node
}

// finding is a problem together with the replacements that may solve it, the best one first.
type finding struct {
	*Error

	replacements []replacement
	hint         string // the end of the message, after boolPart
}

const (
	// boolPart ends a message if every suggestion would make a part true or false.
	boolPart = "; a part that is true or false makes two locks for all requests"
	// hole is the node whose text is not yet known. No expression contains this character.
	hole = "\uE000"
)

// suggest gives each problem of an expression the first of its replacements that the language accepts. It removes problems
// that an earlier suggestion solves.
func (c *checker) suggest(root ast.Node) []*Error {
	choices := make([]choice, len(c.findings))
	for i := range c.findings {
		choices[i] = c.choose(root, i)
	}
	var problems []*Error
	chosen := map[replacement]bool{}
	last := ""
	for i, f := range c.findings {
		r := choices[i].replacement
		if chosen[r] {
			continue
		}
		if r.text != "" {
			chosen[r], f.Suggestion = true, r.text
		} else if choices[i].isBool {
			f.Message += boolPart + f.hint
		}
		if f.hint == "" || f.Message != last { // both operands of && have the same problem
			problems = append(problems, f.Error)
		}
		last = f.Message
	}
	return problems
}

// choice is the replacement for a problem. isBool reports that a replacement was refused because the part would be true or
// false.
type choice struct {
	replacement

	isBool bool
}

// choose returns the first replacement for the problem of the given index that the language accepts. Its text is empty if
// the language accepts none.
func (c *checker) choose(root ast.Node, index int) choice {
	isBool := false
	for _, r := range c.findings[index].replacements {
		if c.withBool[r.node] {
			isBool = true
			continue
		}
		text, v := c.try(root, index, r)
		if text != "" {
			r.text = text
			return choice{replacement: r}
		}
		isBool = isBool || v.isBool
	}
	return choice{isBool: isBool}
}

// try compiles the expression with the replacement for the problem of the given index. It returns the text to suggest, or ""
// if the language does not accept it.
func (c *checker) try(root ast.Node, index int, r replacement) (text string, v verdict) {
	if r.text == "" {
		return "", v
	}
	made, ok := parseOperand(r.text, c.schema)
	if !ok {
		return "", v
	}
	v = examine(replaceNode(root, r.node, made), c.source, c.schema, c.condition)
	v.isBool = v.isBool && decides(made)
	replaceNode(root, made, r.node)
	if v.instead != "" {
		return c.try(root, index, replacement{node: root, text: v.instead})
	}
	if v.isBool || !v.solves(c.findings, index) && !c.resolves(root, r, made) {
		return "", v
	}
	return c.parenthesize(root, r, made), v
}

// resolves reports whether a replacement makes a reference inside a larger expression valid.
func (c *checker) resolves(root ast.Node, r replacement, made ast.Node) bool {
	if r.reference == nil || r.reference == root {
		return false
	}
	reference := replaceNode(r.reference, r.node, made)
	defer replaceNode(reference, made, r.node)
	alone := newChecker(c.source, c.schema, c.condition)
	element := AnyType()
	alone.element = &element
	alone.node(reference, modeKey)
	return len(alone.findings) == 0
}

// parenthesize returns the text of a replacement, in parentheses if the expression around it needs them. It returns "" if
// no text can stand in place of the node.
func (c *checker) parenthesize(root ast.Node, r replacement, made ast.Node) string {
	mark := &ast.IdentifierNode{Value: hole}
	root = replaceNode(root, r.node, mark)
	around := sourceOf(root)
	root = replaceNode(root, mark, made)
	want := sourceOf(root)
	replaceNode(root, made, r.node)
	for _, text := range []string{r.text, "(" + r.text + ")"} {
		if tree, err := parse(strings.ReplaceAll(around, hole, text), c.schema); err == nil && sourceOf(tree.Node) == want {
			return text
		}
	}
	return ""
}

// parseOperand parses an expression that may be inside a predicate.
func parseOperand(text string, schema *Schema) (ast.Node, bool) {
	tree, err := parse("map([], "+text+")", schema)
	if err != nil {
		return nil, false
	}
	loop, ok := tree.Node.(*ast.BuiltinNode)
	if !ok || len(loop.Arguments) != 2 {
		return nil, false
	}
	predicate, ok := loop.Arguments[1].(*ast.PredicateNode)
	if !ok {
		return nil, false
	}
	return predicate.Node, true
}

// replaceNode replaces a node in a tree and returns the root of the tree.
func replaceNode(root, from, to ast.Node) ast.Node {
	ast.Walk(&root, replacer{from, to})
	return root
}

type replacer struct{ from, to ast.Node }

// Visit implements [ast.Visitor].
func (r replacer) Visit(n *ast.Node) {
	if *n == r.from {
		*n = r.to
	}
}

// verdict is the result of compiling an expression with a suggestion.
type verdict struct {
	messages []string // the problems
	instead  string   // the expression to write instead, if the value is not a part or a condition
	isBool   bool     // the value of a key part is the result of a comparison or of a logical operator
}

// examine compiles an expression as a part or as a condition.
func examine(root ast.Node, source segment, schema *Schema, condition bool) (v verdict) {
	if isLarge(&root) {
		return verdict{messages: []string{"too large"}}
	}
	c := newChecker(source, schema, condition)
	p := c.program(root)
	p.source = sourceOf(root)
	for _, f := range c.findings {
		v.messages = append(v.messages, f.Message)
	}
	switch {
	case condition && len(v.messages) == 0 && p.typ.kind != kindBool && p.typ.kind != kindAny:
		v.messages = append(v.messages, "not a bool")
		if p.ref != nil {
			v.instead = suggestCondition(p.source, p.typ, false)
		}
	case !condition && len(v.messages) == 0:
		if m := p.checkPart(schema); m != nil {
			v.messages, v.instead = append(v.messages, m.message), m.instead
		}
	}
	v.isBool = !condition && decides(root)
	return v
}

// solves reports whether the problem of the given index is gone and no other problem is new.
func (v verdict) solves(findings []finding, index int) bool {
	known := map[string]int{}
	for i, f := range findings {
		if i != index {
			known[f.Message]++
		}
	}
	return !slices.ContainsFunc(v.messages, func(message string) bool {
		known[message]--
		return known[message] < 0
	})
}

// decides reports whether an expression yields the result of a comparison or of a logical operator. A field that is a bool
// does not count.
func decides(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.UnaryNode:
		return x.Operator == "not" || x.Operator == "!"
	case *ast.BinaryNode:
		switch x.Operator {
		case "??", "+":
			return decides(x.Left) || decides(x.Right)
		case "-", "*", "/", "%":
			return false
		}
		return true
	case *ast.ConditionalNode:
		return decides(x.Exp1) || decides(x.Exp2)
	case *ast.ArrayNode:
		return slices.ContainsFunc(x.Nodes, decides)
	case *ast.PredicateNode:
		return decides(x.Node)
	case *ast.SliceNode:
		return decides(x.Node)
	case *ast.MemberNode:
		return decides(x.Node)
	case *ast.BuiltinNode:
		return callDecides(x.Name, x.Arguments)
	case *ast.CallNode:
		callee, ok := x.Callee.(*ast.IdentifierNode)
		return ok && callDecides(callee.Value, x.Arguments)
	}
	return false
}

func callDecides(name string, args []ast.Node) bool {
	switch f, ok := functions[name]; {
	case name == "any" || name == "all":
		return true
	case !ok || f.mode == argValue || len(args) == 0:
		return false
	case name == "map":
		return decides(args[len(args)-1])
	}
	return decides(args[0])
}

// acceptedExpression returns an expression if the language accepts it as a part or as a condition. Otherwise it returns the
// expression to write instead, or "".
func acceptedExpression(text string, source segment, schema *Schema, condition bool) (accepted string, v verdict) {
	tree, err := parse(text, schema)
	if text == "" || err != nil {
		return "", v
	}
	v = examine(tree.Node, source, schema, condition)
	if v.instead != "" {
		return acceptedExpression(v.instead, source, schema, condition)
	}
	if v.isBool || len(v.messages) > 0 {
		return "", v
	}
	return text, v
}

// suggestCondition returns a condition that is true if a value is not empty, or "". negated returns the opposite.
func suggestCondition(source string, t Type, negated bool) string {
	operator := map[bool]string{true: " == ", false: " != "}[negated]
	switch t.kind {
	case kindString:
		return source + operator + `""`
	case kindInt:
		return source + operator + "0"
	case kindList:
		return "len(" + source + ")" + cmp.Or(map[bool]string{true: " == 0"}[negated], " > 0")
	}
	return ""
}
