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
	key   *node  // the computed name or index that chooses from the base, or an entry
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
		return from(node{typ: *c.element, eval: func(e *evaluation) (any, *EvalError) { return e.element, nil }}, "")
	case *ast.MemberNode:
		return c.member(x)
	}
	return from(c.node(n, modeLenient), textOf(n))
}

func (c *checker) variable(x *ast.IdentifierNode) *chain {
	name := x.Value
	if name == argumentAlias {
		name = ArgumentName
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
	if ch.key != nil {
		ch = from(c.read(ch, modeLenient), ch.text)
	}
	switch property := x.Property.(type) {
	case *ast.StringNode:
		return c.named(ch, property)
	case *ast.IntegerNode:
		return c.indexed(ch, property, property.Value)
	case *ast.UnaryNode:
		if n, ok := property.Node.(*ast.IntegerNode); ok && property.Operator == "-" {
			return c.indexed(ch, property, -n.Value)
		}
	}
	return c.computed(ch, x)
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
		c.spelling.add(name)
		return ch.take(step{kind: stepKey, name: name}, ch.typ.element(), selector(name))
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
	ch.take(step{kind: stepField, get: f.Get}, f.Type, selector(name))
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
	ch.typ = StringType()
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
		return ch.take(step{kind: stepIndex, index: index}, ch.typ.element(), suffix)
	case ch.typ.kind == kindMap:
		return ch.take(step{kind: stepKey, name: strconv.Itoa(index)}, ch.typ.element(), suffix)
	case ch.item != nil:
		c.report(at, ch.text, "a %s has one value and no index", ch.keyed.Noun)
	default:
		c.report(at, "", "%s is %s and has no elements", ch.what(), ch.typ.describe())
	}
	return broken(ch.text + suffix)
}

// computed takes what a computed name or index chooses.
func (c *checker) computed(ch *chain, x *ast.MemberNode) *chain {
	text := ch.text + "[" + textOf(x.Property) + "]"
	key := c.node(x.Property, modeValue)
	if key.typ.kind != kindString && key.typ.kind != kindInt && key.typ.kind != kindAny {
		c.report(x.Property, "", "a name or an index cannot be %s", key.typ.describe())
	}
	switch ch.typ.kind {
	case kindKeyed:
		ch.item = &item{index: oneValue}
		ch.typ, ch.text, ch.key = StringType(), text, &key
		return ch
	case kindMap:
		c.meet(key.typ, Type{texts: ch.typ.texts})
		fallthrough
	case kindList, kindAny:
		next := from(c.materialize(x, ch, modeLenient), text)
		next.typ, next.key = ch.typ.element(), &key
		return next
	case kindObject:
		c.report(x.Property, "", "the fields of %s are chosen by names, not by computed values", ch.text)
	default:
		c.report(x.Property, "", "%s is %s and has no elements", ch.what(), ch.typ.describe())
	}
	return broken(text)
}

// materialize makes the node that reads a chain, where its value is used.
func (c *checker) materialize(at ast.Node, ch *chain, m mode) node {
	if ch.typ.kind == kindKeyed {
		example := append(ch.typ.names(), "name")
		return c.report(at, ch.text+"."+example[0], "%s is a set of values, one per %s", ch.text, ch.keyed.Noun)
	}
	if v, ok := ch.typ.object.(Valued); ok {
		if ch.key != nil {
			ch = from(c.read(ch, m), ch.text)
		}
		f := v.Value()
		ch.take(step{kind: stepField, get: f.Get}, f.Type, "")
	}
	return c.read(ch, m)
}

func (c *checker) read(ch *chain, m mode) node {
	a, base, key := &ch.access, ch.base, ch.key
	a.mode = m
	var read func(e *evaluation) (any, *EvalError)
	switch {
	case key != nil:
		read = c.both(a.typ, base, *key, a.chosen).eval
		if a.variable != nil {
			read = func(e *evaluation) (any, *EvalError) {
				name, failure := key.eval(e)
				if failure != nil {
					return nil, failure
				}
				return a.entry(e, name)
			}
		}
	case a.variable != nil:
		read = func(e *evaluation) (any, *EvalError) { return a.value(e.env) }
	case len(a.steps) == 0:
		return node{typ: a.typ, eval: base.eval}
	default:
		read = func(e *evaluation) (any, *EvalError) {
			v, failure := base.eval(e)
			switch {
			case failure != nil:
				return nil, failure
			case v == nil:
				return a.absent(a.steps[0].before(a, 0))
			}
			return a.follow(v)
		}
	}
	n := node{typ: a.typ, eval: read}
	if a.makes() {
		n.eval = func(e *evaluation) (any, *EvalError) {
			v, failure := read(e)
			if failure == nil {
				failure = e.spend(madeOf(v))
			}
			return v, failure
		}
	}
	if a.variable != nil && key == nil {
		n.ref = a
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
