package keyexpr

import (
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/interlock-go/interlock/failpolicy"
)

// chain is a reference while it is checked. A step from it changes it.
type chain struct {
	access

	base  node   // where it starts, if that is not a variable
	keyed *Keyed // of a keyed variable, entry chosen or not
}

// from is the chain that starts at a computed value.
func from(base node, text string) *chain {
	return &chain{base: base, access: access{typ: base.typ, text: text}}
}

// broken is what is left of a chain after a problem.
func broken(text string) *chain { return from(literal(AnyType(), nil), text) }

// chain checks the longest reference that ends in n.
func (c *checker) chain(n ast.Node) *chain {
	switch x := n.(type) {
	case *ast.ChainNode: // ?. is no different from . here: what is missing stays missing
		return c.chain(x.Node)
	case *ast.IdentifierNode:
		return c.variable(x)
	case *ast.PointerNode:
		if x.Name != "" {
			return from(c.report(x, "", "#%s is not known here: # is the element, and .name a field of it", x.Name), "")
		}
		return from(node{typ: *c.element, eval: func(e *evaluation) any {
			if list, lazy := e.element.(lazyList); lazy {
				e.spend(comparison * list.n)
			}
			return whole(e.element, e.source)
		}}, "")
	case *ast.MemberNode:
		return c.member(x)
	}
	return from(c.node(n, modeLenient), textOf(n))
}

func (c *checker) variable(x *ast.IdentifierNode) *chain {
	name := x.Value
	if name == argumentAlias {
		name = argumentName
	}
	slot, ok := c.schema.slots[name]
	if !ok {
		return from(c.unknownName(x, name), name)
	}
	c.used[name] = true
	v := &c.schema.variables[slot]
	return &chain{access: access{variable: v, slot: slot, typ: v.Type, text: name}, keyed: v.Type.keyed}
}

func (c *checker) member(x *ast.MemberNode) *chain {
	ch := c.chain(x.Node)
	if name, ok := x.Property.(*ast.StringNode); ok {
		return c.named(ch, name)
	}
	if index, ok := integerOf(x.Property); ok {
		return c.indexed(ch, x.Property, index)
	}
	quoted := ""
	if name, ok := x.Property.(*ast.IdentifierNode); ok && slices.Contains(ch.typ.names(), name.Value) {
		quoted = ch.text + selector(name.Value)
	}
	c.report(x.Property, quoted, "a name is a literal text and an index a literal integer: register a variable for what is chosen otherwise")
	return broken(textOf(x))
}

// integerOf is a literal integer, which may have a sign.
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

// named takes a field, a key of a map, or an entry of a keyed variable.
func (c *checker) named(ch *chain, property *ast.StringNode) *chain {
	name := property.Value
	switch ch.typ.kind {
	case kindKeyed:
		return c.entry(ch, property, name)
	case kindObject:
		return c.field(ch, property, name)
	case kindMap, kindAny:
		return ch.take(nameStep(name), ch.typ.element(), selector(name))
	case kindList:
		c.report(property, "map("+ch.text+", ."+name+")", "%s is a list; its elements may have a field %s", ch.text, name)
	default:
		c.report(property, "", "%s is %s and has no field %s", ch.what(), ch.typ.describe(), name)
	}
	return broken(ch.text + selector(name))
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

func (c *checker) field(ch *chain, at ast.Node, name string) *chain {
	f, ok := ch.typ.object.Field(name)
	if !ok {
		c.unknownField(ch, at, name)
		return broken(ch.text + selector(name))
	}
	if f.Type.kind == kindInvalid {
		c.report(at, "", "the field %s of %s has a type that expressions cannot use", name, ch.typ.object.Name())
		f.Type = AnyType()
	}
	ch.take(fieldStep(f.Get), f.Type, selector(name))
	ch.implicit, ch.zero, ch.preset = f.Implicit, f.Zero, f.Default
	return ch
}

// entry chooses an entry of a keyed variable.
func (c *checker) entry(ch *chain, at ast.Node, name string) *chain {
	key := name
	if ch.keyed.Canonical != nil {
		key = ch.keyed.Canonical(name)
	}
	if !ch.keyed.Open && !slices.Contains(ch.keyed.Known, key) {
		c.unknownEntry(ch, at, name)
	}
	ch.item = &item{key: key, index: oneValue}
	ch.typ = Type{kind: kindString}
	if ch.keyed.isCaseless(key) {
		ch.typ = TextType("a text in lower case", func(text string) (string, bool) { return strings.ToLower(text), true })
	}
	ch.text += selector(name)
	return ch
}

// indexed takes an element of a list, or one of the values of an entry.
func (c *checker) indexed(ch *chain, at ast.Node, index int) *chain {
	suffix := "[" + strconv.Itoa(index) + "]"
	switch {
	case ch.item != nil && ch.keyed.Repeatable && ch.item.index == oneValue:
		if index < 0 {
			c.report(at, ch.text+"[:]", "a repeated value is counted from its first, 0")
			index = 0
		}
		ch.item.index = index
		ch.text += suffix
		return ch
	case ch.typ.kind == kindList || ch.typ.kind == kindAny:
		return ch.take(indexStep(index), ch.typ.element(), suffix)
	case ch.typ.kind == kindMap:
		return ch.take(nameStep(strconv.Itoa(index)), ch.typ.element(), suffix)
	case ch.item != nil:
		c.report(at, ch.text, "a %s has one value and no index", ch.keyed.Noun)
	default:
		c.report(at, "", "%s is %s and has no elements", ch.what(), ch.typ.describe())
	}
	return broken(ch.text + suffix)
}

// materialize makes the node that reads a chain, where its value is used.
func (c *checker) materialize(at ast.Node, ch *chain, m mode) node {
	if ch.typ.kind == kindKeyed {
		example := append(ch.typ.names(), "name")
		return c.report(at, ch.text+"."+example[0], "%s is a set of values, one per %s", ch.text, ch.keyed.Noun)
	}
	if ch.typ.kind == kindObject {
		if f, valued := ch.typ.object.Field(""); valued {
			ch.take(fieldStep(f.Get), f.Type, "")
		}
	}
	a, base := &ch.access, ch.base
	a.mode = m
	if a.variable == nil && len(a.steps) == 0 {
		return node{typ: a.typ, eval: base.eval}
	}
	n := node{typ: a.typ}
	if a.variable != nil {
		n.ref = a
	}
	makes := a.makes()
	n.eval = func(e *evaluation) any {
		var v any
		if a.variable != nil {
			v = a.value(e.env)
		} else if v = base.eval(e); v == nil {
			v = a.absent(a.before(0))
		} else {
			v = a.follow(v)
		}
		if makes {
			e.spend(madeOf(v))
		}
		return v
	}
	return n
}

// unknownName reports a name that no variable has.
func (c *checker) unknownName(at ast.Node, name string) (n node) {
	if found, ok := c.schema.find(name); ok && found != name {
		n = c.report(at, found, "unknown name %s", name)
	} else {
		names := c.schema.Variables()
		n = c.report(at, failpolicy.Nearest(name, names), "unknown name %s: %s", name, listing(names))
	}
	c.unknown(name, "")
	return n
}

func (c *checker) unknownField(ch *chain, at ast.Node, name string) {
	c.report(at, ch.similar(name), "%s has no field %s: %s", ch.typ.object.Name(), name, listing(ch.typ.names()))
}

func (c *checker) unknownEntry(ch *chain, at ast.Node, name string) {
	c.report(at, ch.similar(name), "there is no %s %s: %s", ch.keyed.Noun, name, listing(ch.typ.names()))
	c.unknown(name, ch.variable.Name)
}

// similar is a name like this one that may follow the chain.
func (c *chain) similar(name string) string {
	if similar := failpolicy.Nearest(name, c.typ.names()); similar != "" {
		return c.text + selector(similar)
	}
	return ""
}
