package keyexpr

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"github.com/interlock-go/interlock/failpolicy"
)

// habit is a construct of SpEL, the expression language of the Java original,
// or of JavaScript, that this language writes in another way.
type habit struct {
	pattern *regexp.Regexp
	message string
	instead string
}

var habits = []habit{ //nolint:gochecknoglobals // a table that is only read
	{regexp.MustCompile(`!==`), "!== is not known here", "!="},
	{regexp.MustCompile(`===`), "=== is not known here", "=="},
	{regexp.MustCompile(`[^=!<>]=[^=]`), "= is not known here", "=="},
}

var spelVariable = regexp.MustCompile(`#([\pL_][\pL\pN_]*(?:\.[\pL_][\pL\pN_]*)*(?:\(\))?)`)

// property is what a path of names that ends with a call of a getter, or of toString, is called here.
func property(path string) string {
	path, isCall := strings.CutSuffix(path, "()")
	last := strings.LastIndexByte(path, '.') + 1
	if field, ok := getter(path[last:]); ok && isCall {
		return path[:last] + field
	}
	return strings.TrimSuffix(path, ".toString") // what a part does by itself
}

// getter is the field that a getter of Java reads.
func getter(name string) (field string, ok bool) {
	name, ok = strings.CutPrefix(name, "get")
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(first)) + name[size:], ok && unicode.IsUpper(first)
}

// explain finds the habit behind an expression that does not parse.
func (r *resolver) explain() bool {
	found, source := false, r.source.text
	for _, m := range spelVariable.FindAllStringSubmatchIndex(source, -1) {
		name := source[m[2]:m[3]]
		if name == "index" || name == "acc" {
			continue
		}
		r.problems = append(r.problems, r.source.at(m[0], "#"+name+" is not known here: names stand without #", r.correction(name)))
		found = true
	}
	for _, h := range habits {
		if at := h.pattern.FindStringIndex(source); at != nil {
			r.problems = append(r.problems, r.source.at(at[0]+strings.IndexAny(source[at[0]:], "!="), h.message, h.instead))
			return true
		}
	}
	return found
}

// correction is what a SpEL name is called here.
func (r *resolver) correction(name string) string {
	name = property(name)
	if found, ok := r.schema.find(name); ok {
		return found
	}
	if similar := failpolicy.Nearest(name, r.candidates()); similar != "" {
		return similar
	}
	return r.schema.guess(name)
}

// candidates are all references of one or two names.
func (r *resolver) candidates() []string {
	var all []string
	for _, v := range r.schema.variables {
		all = append(all, v.Name)
		for _, name := range v.Type.names() {
			all = append(all, v.Name+"."+name)
		}
	}
	return all
}

// method explains a method call.
func (r *resolver) method(x *ast.CallNode) Type {
	callee, ok := x.Callee.(*ast.MemberNode)
	if !ok {
		return r.report(x, "", "only functions can be called")
	}
	name := ""
	if property, ok := callee.Property.(*ast.StringNode); ok {
		name = property.Value
	}
	base := textOf(callee.Node)
	if strings.HasPrefix(base, "T(") {
		return r.report(callee.Node, "", "types and their static methods cannot be used")
	}
	instead := map[string]string{
		"toString": "string(" + base + ")", "String": "string(" + base + ")", "toLowerCase": "lower(" + base + ")",
		"toUpperCase": "upper(" + base + ")", "trim": "trim(" + base + ")", "length": "len(" + base + ")",
		"size": "len(" + base + ")", "isEmpty": "len(" + base + ") == 0", "concat": base + " + …",
		"equals": base + " == …", "get": base + "[…]",
	}[name]
	if field, ok := getter(name); ok {
		instead = base + "." + field
	}
	return r.report(x, instead, "methods cannot be called: .%s()", name)
}

// dashed finds header.X-Id, which reads as header.X minus Id.
func (r *resolver) dashed(n *ast.BinaryNode) bool {
	member, rest := dashes(n)
	if member == nil || rest == "" {
		return false
	}
	base, isName := member.Node.(*ast.IdentifierNode)
	first, isString := member.Property.(*ast.StringNode)
	if !isName || !isString {
		return false
	}
	slot, ok := r.schema.slots[base.Value]
	if !ok || r.schema.variables[slot].Type.kind != kindKeyed {
		return false
	}
	r.used[base.Value] = true
	r.report(first, base.Value+`["`+first.Value+rest+`"]`, "%s.%s%s is a subtraction", base.Value, first.Value, rest)
	return true
}

// dashes is a member and the names that are subtracted from it.
func dashes(n ast.Node) (member *ast.MemberNode, rest string) {
	switch x := n.(type) {
	case *ast.MemberNode:
		return x, ""
	case *ast.BinaryNode:
		right := x.Right
		for fallback, ok := right.(*ast.BinaryNode); ok && fallback.Operator == "??"; fallback, ok = right.(*ast.BinaryNode) {
			right = fallback.Left // it binds more tightly
		}
		if name, ok := right.(*ast.IdentifierNode); ok && x.Operator == "-" {
			member, rest = dashes(x.Left)
			return member, rest + "-" + name.Value
		}
	}
	return nil, ""
}
