package keyexpr

import (
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// chain is a reference while it is resolved: a variable or a computed base, and
// the steps from there.
type chain struct {
	variable *Variable
	slot     int
	base     ast.Node // if variable is nil
	keyed    *Keyed   // of a keyed variable, entry chosen or not
	item     *item
	computed ast.Node // the computed name of an entry
	element  *access  // of base, if a computed index chose it; has no mode yet
	steps    []step
	typ      Type
	implicit bool
	zero     string
	text     string
}

// chain resolves the longest reference that ends in n.
func (r *resolver) chain(n ast.Node) *chain {
	switch x := n.(type) {
	case *ast.ChainNode: // ?. is no different from . here: what is missing stays missing
		return r.chain(x.Node)
	case *ast.IdentifierNode:
		return r.identifier(x)
	case *ast.PointerNode:
		return r.pointer(x)
	case *ast.MemberNode:
		return r.member(x)
	}
	text := textOf(n)
	base := n
	typ := r.node(&base, modeLenient)
	return &chain{base: base, typ: typ, text: text}
}

func (r *resolver) identifier(x *ast.IdentifierNode) *chain {
	for _, l := range slices.Backward(r.locals) {
		if l.name == x.Value {
			return &chain{base: x, typ: l.typ, text: x.Value}
		}
	}
	name := x.Value
	if name == argumentAlias {
		name = ArgumentName
	}
	slot, ok := r.schema.slots[name]
	if !ok {
		return &chain{base: x, typ: r.unknownName(x, name), text: name}
	}
	r.used[name] = true
	v := &r.schema.variables[slot]
	return &chain{variable: v, slot: slot, typ: v.Type, keyed: v.Type.keyed, text: name}
}

func (r *resolver) pointer(x *ast.PointerNode) *chain {
	switch {
	case len(r.elements) == 0:
		return &chain{base: x, typ: r.report(x, "", "# stands outside of a predicate")}
	case x.Name == "":
		return &chain{base: x, typ: r.elements[len(r.elements)-1]}
	case x.Name == "index":
		return &chain{base: x, typ: IntType(), text: "#index"}
	}
	name := x.Name
	return &chain{base: x, typ: r.report(x, r.correction(name), "unknown pointer #%s", name), text: "#" + name}
}

func (r *resolver) member(x *ast.MemberNode) *chain {
	c := r.chain(x.Node)
	if c.item != nil && c.item.index == allValues || c.computed != nil {
		c = r.rebase(x, c)
	}
	switch property := x.Property.(type) {
	case *ast.StringNode:
		return r.named(c, property)
	case *ast.IntegerNode:
		return r.indexed(c, property, property.Value)
	case *ast.UnaryNode:
		if n, ok := property.Node.(*ast.IntegerNode); ok && property.Operator == "-" {
			return r.indexed(c, property, -n.Value)
		}
	}
	return r.computedMember(c, x)
}

// rebase turns a chain into the base of another one, which reports it if it is
// missing.
func (r *resolver) rebase(at ast.Node, c *chain) *chain {
	var n ast.Node = &ast.NilNode{}
	n.SetLocation(at.Location())
	typ := r.materialize(&n, c, modeLenient)
	return &chain{base: n, typ: typ, text: c.text}
}

// named takes a field, a key of a map, or an entry of a keyed variable.
func (r *resolver) named(c *chain, property *ast.StringNode) *chain {
	name := property.Value
	switch c.typ.kind {
	case kindKeyed:
		return r.entry(c, property, name)
	case kindObject:
		return r.field(c, property, name)
	case kindMap, kindAny:
		r.spelling.add(name)
		return c.take(step{kind: stepKey, name: name}, c.typ.element(), selector(name))
	case kindList:
		r.report(property, "map("+c.text+", ."+name+")", "%s is a list; its elements may have a field %s", c.text, name)
	default:
		r.report(property, "", "%s is %s and has no field %s", c.text, c.typ.describe(), name)
	}
	return &chain{base: &ast.NilNode{}, typ: AnyType(), text: c.text + selector(name)}
}

// selector is how a name is written after a value.
func selector(name string) string {
	if isIdentifier(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

func (c *chain) take(s step, typ Type, suffix string) *chain {
	next := *c
	next.text = c.text + suffix
	s.text, s.folded = next.text, foldName(s.name)
	next.steps = append(slices.Clone(c.steps), s)
	next.typ = typ
	next.implicit, next.zero = false, ""
	return &next
}

func (r *resolver) field(c *chain, at ast.Node, name string) *chain {
	f, ok := c.typ.object.Field(name)
	if !ok {
		r.unknownField(c, at, name)
		return &chain{base: &ast.NilNode{}, typ: AnyType(), text: c.text + selector(name)}
	}
	if f.Type.kind == kindInvalid {
		r.report(at, "", "the field %s of %s has a type that expressions cannot use", name, c.typ.object.Name())
		f.Type = AnyType()
	}
	next := c.take(step{kind: stepField, get: f.Get}, f.Type, selector(name))
	next.implicit, next.zero = f.Implicit, f.Zero
	return next
}

// entry chooses an entry of a keyed variable.
func (r *resolver) entry(c *chain, at ast.Node, name string) *chain {
	key := name
	if c.keyed.Canonical != nil {
		key = c.keyed.Canonical(name)
	}
	if !c.keyed.Open && !slices.Contains(c.keyed.Known, key) {
		r.unknownEntry(c, at, name)
	}
	next := *c
	next.item = &item{key: key, index: oneValue}
	next.typ = StringType()
	next.text += selector(name)
	return &next
}

// indexed takes an element of a list, or one of the values of an entry.
func (r *resolver) indexed(c *chain, at ast.Node, index int) *chain {
	suffix := "[" + strconv.Itoa(index) + "]"
	switch {
	case c.item != nil && c.keyed.Repeatable && !c.item.indexed:
		if index < 0 {
			r.report(at, c.text+"[:]", "a repeated value is counted from its first, 0")
			index = 0
		}
		next := *c
		next.item = &item{key: c.item.key, index: index, indexed: true}
		next.text += suffix
		return &next
	case c.typ.kind == kindList:
		return c.take(step{kind: stepIndex, index: index}, c.typ.element(), suffix)
	case c.typ.kind == kindAny:
		return c.take(step{kind: stepIndex, index: index}, c.typ.element(), suffix)
	case c.typ.kind == kindMap:
		return c.take(step{kind: stepKey, name: strconv.Itoa(index)}, c.typ.element(), suffix)
	case c.item != nil:
		r.report(at, c.text, "a %s has one value and no index", c.keyed.Noun)
	default:
		r.report(at, "", "%s is %s and has no elements", c.text, c.typ.describe())
	}
	return &chain{base: &ast.NilNode{}, typ: AnyType(), text: c.text + suffix}
}

// computedMember takes what a computed name or index chooses.
func (r *resolver) computedMember(c *chain, x *ast.MemberNode) *chain {
	text := c.text + "[" + textOf(x.Property) + "]"
	key := r.node(&x.Property, modeValue)
	if key.kind != kindString && key.kind != kindInt && key.kind != kindAny {
		r.report(x.Property, "", "a name or an index cannot be %s", key.describe())
	}
	switch c.typ.kind {
	case kindKeyed:
		next := *c
		next.item = &item{index: oneValue}
		next.computed = x.Property
		next.typ, next.text = StringType(), text
		return &next
	case kindList, kindMap, kindAny:
		base := r.rebase(x, c)
		a := &access{typ: c.typ.element(), text: text}
		return &chain{base: r.invoke(fnIndex, AnyType(), base.base, a, x.Property), element: a, typ: c.typ.element(), text: text}
	case kindObject:
		r.report(x.Property, "", "the fields of %s are chosen by names, not by computed values", c.text)
	default:
		r.report(x.Property, "", "%s is %s and has no elements", c.text, c.typ.describe())
	}
	return &chain{base: &ast.NilNode{}, typ: AnyType(), text: text}
}

// materialize puts the node that reads a chain in the place of n.
func (r *resolver) materialize(n *ast.Node, c *chain, m mode) Type {
	if c.typ.kind == kindKeyed {
		example := "name"
		if len(c.keyed.Known) > 0 {
			example = c.keyed.Known[0]
		}
		return r.report(*n, c.text+"."+example, "%s is a set of values, one per %s", c.text, c.keyed.Noun)
	}
	if c.element != nil {
		c.element.mode = m
	}
	if c.variable == nil && len(c.steps) == 0 {
		location := (*n).Location()
		*n = c.base
		(*n).SetLocation(location)
		return c.typ
	}
	a := &access{
		variable: c.variable, slot: c.slot, item: c.item, steps: c.steps, typ: c.typ,
		implicit: c.implicit, zero: c.zero, mode: m, text: c.text,
	}
	location := (*n).Location()
	switch {
	case c.computed != nil:
		*n = r.invoke(fnItem, a.result(), nil, a, c.computed)
	case c.variable != nil:
		*n = r.invoke(fnGet, a.result(), nil, a)
	default:
		*n = r.invoke(fnStep, a.result(), c.base, a)
	}
	setLocation(*n, location)
	return c.typ
}

// result is the type that the language's checker sees: a value that may be nil
// has none.
func (a *access) result() Type {
	if a.mode == modeLenient {
		return AnyType()
	}
	return a.typ
}

// unknownName reports a name that is no variable.
func (r *resolver) unknownName(at ast.Node, name string) Type {
	if found, ok := r.schema.find(name); ok && found != name {
		return r.report(at, found, "unknown name %s", name)
	}
	names := r.schema.Variables()
	return r.report(at, nearest(name, names), "unknown name %s: %s", name, listing(names))
}

func (r *resolver) unknownField(c *chain, at ast.Node, name string) {
	fields := c.typ.object.Fields()
	suggestion := nearest(name, fields)
	if suggestion != "" {
		suggestion = c.text + selector(suggestion)
	}
	r.report(at, suggestion, "%s has no field %s: %s", c.typ.object.Name(), name, listing(fields))
}

func (r *resolver) unknownEntry(c *chain, at ast.Node, name string) {
	suggestion := nearest(name, c.keyed.Known)
	if suggestion != "" {
		suggestion = c.text + selector(suggestion)
	}
	r.report(at, suggestion, "there is no %s %s: %s", c.keyed.Noun, name, listing(c.keyed.Known))
}
