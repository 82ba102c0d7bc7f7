package keyexpr

import (
	"regexp"
	"strings"

	"github.com/expr-lang/expr/ast"
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

var spelVariable = regexp.MustCompile(`#([\pL_][\pL\pN_]*(?:\.[\pL_][\pL\pN_]*)*)`)

// explain finds the habit behind an expression that does not parse.
func (r *resolver) explain() bool {
	found := false
	for _, m := range spelVariable.FindAllStringSubmatchIndex(r.source, -1) {
		name := r.source[m[2]:m[3]]
		if name == "index" || name == "acc" {
			continue
		}
		r.habit(m[0], "#"+name+" is not known here: names stand without #", r.correction(name))
		found = true
	}
	for _, h := range habits {
		if at := h.pattern.FindStringIndex(r.source); at != nil {
			r.habit(at[0]+strings.IndexAny(r.source[at[0]:], "!="), h.message, h.instead)
			return true
		}
	}
	return found
}

func (r *resolver) habit(offset int, message, suggestion string) {
	runes := len([]rune(r.source[:offset]))
	r.problems = append(r.problems, problem{runes, message, suggestion})
}

// correction is what a SpEL name is called here.
func (r *resolver) correction(name string) string {
	if found, ok := r.schema.find(name); ok {
		return found
	}
	if similar := nearest(name, r.candidates()); similar != "" {
		return similar
	}
	return r.schema.guess(name)
}

// candidates are all references of one or two names.
func (r *resolver) candidates() []string {
	var all []string
	for _, v := range r.schema.variables {
		all = append(all, v.Name)
		switch v.Type.kind {
		case kindKeyed:
			for _, k := range v.Type.keyed.Known {
				all = append(all, v.Name+"."+k)
			}
		case kindObject:
			for _, f := range v.Type.object.Fields() {
				all = append(all, v.Name+"."+f)
			}
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
	if strings.HasPrefix(name, "get") && len(name) > len("get") {
		field := name[len("get"):]
		instead = base + "." + strings.ToLower(field[:1]) + field[1:]
	}
	return r.report(x, instead, "methods cannot be called: .%s()", name)
}

// dashed finds header.X-Id, which reads as header.X minus Id.
func (r *resolver) dashed(n ast.Node) bool {
	minus, ok := n.(*ast.BinaryNode)
	if !ok || minus.Operator != "-" {
		return false
	}
	name, ok := dashedName(minus.Right)
	left := minus.Left
	for ok {
		if inner, isMinus := left.(*ast.BinaryNode); isMinus && inner.Operator == "-" {
			var part string
			part, ok = dashedName(inner.Right)
			name, left = part+"-"+name, inner.Left
			continue
		}
		break
	}
	member, isMember := left.(*ast.MemberNode)
	if !ok || !isMember {
		return false
	}
	return r.dashedMember(member, name)
}

// dashedName accepts a name that is no variable, so that the difference of two
// variables stays one.
func dashedName(n ast.Node) (string, bool) {
	id, ok := n.(*ast.IdentifierNode)
	if !ok {
		return "", false
	}
	return id.Value, true
}

func (r *resolver) dashedMember(member *ast.MemberNode, rest string) bool {
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
	r.report(first, base.Value+`["`+first.Value+"-"+rest+`"]`, "%s.%s-%s is a subtraction", base.Value, first.Value, rest)
	return true
}
