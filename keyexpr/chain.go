package keyexpr

import (
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/interlock-go/interlock/failpolicy"
)

// chain is a reference while it is resolved. Who takes a step from it changes it.
type chain struct {
	access

	base     ast.Node // where it starts, if that is no variable
	keyed    *Keyed   // of a keyed variable, entry chosen or not
	computed ast.Node // the computed name of an entry
	element  *access  // of base, if a computed index chose it; has no mode yet
}

// from is the chain that starts at a computed value.
func from(base ast.Node, typ Type, text string) *chain {
	return &chain{base: base, access: access{typ: typ, text: text}}
}

// broken is what is left of a chain after a problem.
func broken(text string) *chain { return from(&ast.NilNode{}, AnyType(), text) }

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
	return from(base, typ, text)
}

func (r *resolver) identifier(x *ast.IdentifierNode) *chain {
	for _, l := range slices.Backward(r.locals) {
		if l.name == x.Value {
			return from(x, l.typ, x.Value)
		}
	}
	name := x.Value
	if name == argumentAlias {
		name = ArgumentName
	}
	slot, ok := r.schema.slots[name]
	if !ok {
		return from(x, r.unknownName(x, name), name)
	}
	r.used[name] = true
	v := &r.schema.variables[slot]
	return &chain{access: access{variable: v, slot: slot, typ: v.Type, text: name}, keyed: v.Type.keyed}
}

func (r *resolver) pointer(x *ast.PointerNode) *chain {
	switch {
	case x.Name == "":
		return from(x, r.elements[len(r.elements)-1], "")
	case x.Name == "index":
		return from(x, IntType(), "#index")
	}
	return from(x, r.report(x, r.correction(x.Name), "unknown pointer #%s", x.Name), "#"+x.Name)
}

func (r *resolver) member(x *ast.MemberNode) *chain {
	c := r.chain(x.Node)
	if c.computed != nil {
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
	return from(n, typ, c.text)
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
		r.report(property, "", "%s is %s and has no field %s", c.what(), c.typ.describe(), name)
	}
	return broken(c.text + selector(name))
}

// what is what messages call the chain. The element of a predicate has no text, so that
// its fields are called .name.
func (c *chain) what() string {
	if c.text == "" {
		return "#"
	}
	return c.text
}

// selector is how a name is written after a value.
func selector(name string) string {
	if identifier.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

func (c *chain) take(s step, typ Type, suffix string) *chain {
	c.text += suffix
	s.text = c.text
	c.steps = append(c.steps, s)
	c.typ, c.implicit, c.zero, c.preset = typ, false, "", nil
	return c
}

func (r *resolver) field(c *chain, at ast.Node, name string) *chain {
	f, ok := c.typ.object.Field(name)
	if !ok {
		r.unknownField(c, at, name)
		return broken(c.text + selector(name))
	}
	if f.Type.kind == kindInvalid {
		r.report(at, "", "the field %s of %s has a type that expressions cannot use", name, c.typ.object.Name())
		f.Type = AnyType()
	}
	c.take(step{kind: stepField, get: f.Get}, f.Type, selector(name))
	c.implicit, c.zero, c.preset = f.Implicit, f.Zero, f.Default
	return c
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
	c.item = &item{key: key, index: oneValue}
	c.typ = StringType()
	if c.keyed.isCaseless(key) {
		c.typ = TextType("a text in lower case", func(text string) (string, bool) { return strings.ToLower(text), true })
	}
	c.text += selector(name)
	return c
}

// indexed takes an element of a list, or one of the values of an entry.
func (r *resolver) indexed(c *chain, at ast.Node, index int) *chain {
	suffix := "[" + strconv.Itoa(index) + "]"
	switch {
	case c.item != nil && c.keyed.Repeatable && c.item.index == oneValue:
		if index < 0 {
			r.report(at, c.text+"[:]", "a repeated value is counted from its first, 0")
			index = 0
		}
		c.item.index = index
		c.text += suffix
		return c
	case c.typ.kind == kindList || c.typ.kind == kindAny:
		return c.take(step{kind: stepIndex, index: index}, c.typ.element(), suffix)
	case c.typ.kind == kindMap:
		return c.take(step{kind: stepKey, name: strconv.Itoa(index)}, c.typ.element(), suffix)
	case c.item != nil:
		r.report(at, c.text, "a %s has one value and no index", c.keyed.Noun)
	default:
		r.report(at, "", "%s is %s and has no elements", c.what(), c.typ.describe())
	}
	return broken(c.text + suffix)
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
		c.item = &item{index: oneValue}
		c.computed = x.Property
		c.typ, c.text = StringType(), text
		return c
	case kindList, kindMap, kindAny:
		if c.typ.kind == kindMap {
			r.meet(key, c.typ)
		}
		base := r.rebase(x, c)
		a := &access{typ: c.typ.element(), text: text}
		next := from(r.invoke(x, a, AnyType(), readElement, base.base, x.Property), a.typ, text)
		next.element = a
		return next
	case kindObject:
		r.report(x.Property, "", "the fields of %s are chosen by names, not by computed values", c.text)
	default:
		r.report(x.Property, "", "%s is %s and has no elements", c.what(), c.typ.describe())
	}
	return broken(text)
}

// materialize puts the node that reads a chain in the place of n.
func (r *resolver) materialize(n *ast.Node, c *chain, m mode) Type {
	if c.typ.kind == kindKeyed {
		example := append(c.typ.names(), "name")
		return r.report(*n, c.text+"."+example[0], "%s is a set of values, one per %s", c.text, c.keyed.Noun)
	}
	if v, ok := c.typ.object.(Valued); ok {
		f := v.Value()
		c.take(step{kind: stepField, get: f.Get}, f.Type, "")
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
	a := &c.access
	a.mode = m
	switch {
	case c.computed != nil:
		*n = r.invoke(*n, a, a.result(), readEntry, c.computed)
	case c.variable != nil:
		*n = r.invoke(*n, a, a.result(), readVariable)
		r.plain[*n] = a
	default:
		*n = r.invoke(*n, a, a.result(), readSteps, c.base)
	}
	return c.typ
}

// result is the type that the language's checker sees: a value that may be nil
// has none.
func (a *access) result() Type {
	if a.mode.lenient() {
		return AnyType()
	}
	return a.typ
}

// unknownName reports a name that is no variable.
func (r *resolver) unknownName(at ast.Node, name string) Type {
	defer r.unknown(name, "") // once it is reported
	if found, ok := r.schema.find(name); ok && found != name {
		return r.report(at, found, "unknown name %s", name)
	}
	names := r.schema.Variables()
	return r.report(at, failpolicy.Nearest(name, names), "unknown name %s: %s", name, listing(names))
}

func (r *resolver) unknownField(c *chain, at ast.Node, name string) {
	r.report(at, c.similar(name), "%s has no field %s: %s", c.typ.object.Name(), name, listing(c.typ.names()))
}

func (r *resolver) unknownEntry(c *chain, at ast.Node, name string) {
	r.report(at, c.similar(name), "there is no %s %s: %s", c.keyed.Noun, name, listing(c.typ.names()))
	r.unknown(name, c.variable.Name)
}

// similar is a name like this one that may follow the chain.
func (c *chain) similar(name string) string {
	if similar := failpolicy.Nearest(name, c.typ.names()); similar != "" {
		return c.text + selector(similar)
	}
	return ""
}
