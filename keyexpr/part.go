package keyexpr

import (
	"errors"
)

// This file decides whether a key can contain the value of an expression.

func (p *program) isConstant() bool { return len(p.used) == 0 && p.typ.kind != kindList }

// checkPart returns a mistake if a key cannot contain values of the program's type. Of a constant
// program, it checks the value.
func (p *program) checkPart(schema *Schema) *mistake {
	if p.isConstant() {
		_, m := p.constantText()
		return m
	}
	typ := p.typ
	list := typ.kind == kindList
	if list {
		typ = typ.element()
	}
	if typ.isPart() {
		return nil
	}
	return selectorMistakef(p.suggestPart(typ, list, schema), "%s", p.describeNotPart(list, schema))
}

func (p *program) describeNotPart(list bool, schema *Schema) string {
	typ, what, advice := p.typ, "", ""
	if list {
		typ, what = p.typ.element(), "a list, and each element is "
	}
	if typ.kind == kindFloat {
		advice = ": " + adviseProgram(schema, "its text")
	}
	return p.source + " is " + what + typ.describe() + "; a key part is a string, a bool, an integer or an enum" + advice
}

// suggestPart suggests a field of an object that can be a part.
func (p *program) suggestPart(typ Type, list bool, schema *Schema) string {
	tree, err := parse(p.source, schema)
	if typ.kind != kindObject || err != nil {
		return ""
	}
	name := firstPartField(typ.object)
	_, isValue := typ.object.Field("")
	switch {
	case isValue && list:
		return "map(" + p.source + ", #)"
	case name == "":
		return ""
	case list:
		return "map(" + p.source + ", ." + name + ")"
	}
	return operandSourceOf(tree.Node) + "." + name
}

// constantText returns the text of a part without variables.
func (p *program) constantText() (string, *mistake) {
	v, failure := p.evalConstant()
	if failure != nil {
		return "", mistakef("%s", failure.Detail)
	}
	text, _ := scalarText(v)
	constant, ok := text.(string)
	if !ok {
		return "", mistakef("%s is %s; a key part is a string, a bool, an integer or an enum", p.source, describe(v))
	}
	if constant == "" {
		return "", mistakef("the part is always empty")
	}
	if problem := (segment{text: constant}).checkLiteral(); problem != nil {
		return "", mistakef("%s", problem.Message)
	}
	return constant, nil
}

// evalConstant evaluates a program that reads no variables.
func (p *program) evalConstant() (v any, failure *EvalError) {
	var err error
	defer func() { failure, _ = errors.AsType[*EvalError](err) }()
	defer new(origin).recoverError(&err)
	return p.run(newEvaluation(Values(nil))), nil
}
