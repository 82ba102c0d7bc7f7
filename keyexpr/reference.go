package keyexpr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// mistake is a problem without its position.
type mistake struct {
	message      string
	replacements []replacement // the expressions that may be meant, the best one first
	instead      string        // for a selector: the expression that replaces the reference up to and including the selector
	isWhole      bool          // instead may also replace the selectors that follow
	isName       bool          // instead corrects a name
	form         string        // a suggestion that is not an expression
	hint         string        // see finding
	unknown, of  string        // see Error.Unknown
}

func mistakef(format string, args ...any) *mistake {
	return &mistake{message: fmt.Sprintf(format, args...)}
}

// selectorMistakef returns a mistake in a selector. The expression instead replaces the
// reference up to and including the selector.
func selectorMistakef(instead, format string, args ...any) *mistake {
	m := mistakef(format, args...)
	m.instead = instead
	return m
}

// similarMistakef returns a mistake in a selector whose suggestion corrects a name.
func similarMistakef(instead, format string, args ...any) *mistake {
	m := selectorMistakef(instead, format, args...)
	m.isName = true
	return m
}

// wholeMistakef returns a mistake in a selector whose suggestion also replaces the selectors that follow.
func wholeMistakef(instead, format string, args ...any) *mistake {
	m := selectorMistakef(instead, format, args...)
	m.isWhole = true
	return m
}

// chain is a reference while it is checked. Each select method appends one selector. After a mistake
// the chain continues with the value that the user probably meant, or with a value of unknown type, so
// that one problem is not reported twice.
type chain struct {
	access

	base  node   // the computed value that the chain starts at, if it does not start at a variable
	keyed *Keyed // the entries, if the chain is a keyed variable
}

func chainOfVariable(v *Variable, slot int) *chain {
	return &chain{access: access{variable: v, slot: slot, typ: v.Type, text: v.Name}, keyed: v.Type.keyed}
}

// chainOfValue returns a chain that starts at a computed value.
func chainOfValue(base node, text string) *chain {
	return &chain{base: base, access: access{typ: base.typ, text: text}}
}

// fail turns the chain into a value of unknown type and returns the mistake.
func (c *chain) fail(suffix string, m *mistake) *mistake {
	*c = *chainOfValue(literalNode(AnyType(), nil), c.text+suffix)
	return m
}

// selectName selects a field, a key of a map, or an entry of a keyed variable.
func (c *chain) selectName(name string) *mistake {
	suffix := selectorOf(name)
	switch c.typ.kind {
	case kindKeyed:
		return c.selectEntry(name)
	case kindObject:
		return c.selectField(name)
	case kindMap, kindAny:
		c.add(nameStep(name), c.typ.element(), suffix)
		return nil
	case kindList:
		return c.fail(suffix, selectorMistakef("map("+c.nameForMessage()+", "+selectorOfElement(c.typ.element().spelling(name))+")", "%s is a list; its elements may have a field %s", c.nameForMessage(), quoteName(name)))
	default:
		return c.fail(suffix, wholeMistakef(c.partAlone(), "%s is %s and has no field %s", c.nameForMessage(), c.typ.describe(), quoteName(name)))
	}
}

func (c *chain) selectField(name string) *mistake {
	f, ok := c.typ.object.Field(name)
	if !ok {
		if o, ok := c.typ.object.(goObject); ok && o.hides(name) {
			return c.fail(selectorOf(name), similarMistakef(c.similar(name), "the field %s of %s is not exported: %s", name, o.Name(), listForMessage(c.typ.names())))
		}
		return c.fail(selectorOf(name), similarMistakef(c.similar(name), "%s has no field %s: %s", c.typ.object.Name(), quoteName(name), listForMessage(c.typ.names())))
	}
	var m *mistake
	if f.Type.kind == kindInvalid {
		m = mistakef("the field %s of %s has a type that expressions cannot use: add a string field with its value", quoteName(name), c.typ.object.Name())
		f.Type = AnyType()
	}
	c.add(fieldStep(f.Get), f.Type, selectorOf(name))
	c.implicit, c.zero, c.preset = f.Implicit, f.Zero, f.Default
	return m
}

// selectEntry selects an entry of a keyed variable.
func (c *chain) selectEntry(name string) *mistake {
	key := name
	if c.keyed.Canonical != nil {
		key = c.keyed.Canonical(name)
	}
	var m *mistake
	if !c.keyed.Open && !slices.Contains(c.keyed.Known, key) {
		m = similarMistakef(c.similar(name), "%s %s does not exist: %s", c.keyed.Noun, quoteName(name), listForMessage(c.typ.names()))
		m.unknown, m.of = name, c.variable.Name
	}
	c.item = &item{key: key, index: oneValue}
	c.typ = Type{kind: kindString}
	if c.keyed.isCaseless(key) {
		c.typ = TextType("a text in lower case", func(text string) (string, bool) { return strings.ToLower(text), true })
	}
	c.text += selectorOf(name)
	return m
}

// selectIndex selects an element of a list, or one of the values of an entry.
func (c *chain) selectIndex(index int) *mistake {
	suffix := "[" + strconv.Itoa(index) + "]"
	switch {
	case c.hasOneOfSeveral():
		var m *mistake
		if index < 0 {
			m = selectorMistakef(c.text+"[:]", "the index of a repeated value must be 0 or more")
			index = 0
		}
		c.item.index = index
		c.text += suffix
		return m
	case c.typ.kind == kindList || c.typ.kind == kindAny:
		c.add(indexStep(index), c.typ.element(), suffix)
		return nil
	case c.typ.kind == kindMap:
		c.add(nameStep(strconv.Itoa(index)), c.typ.element(), suffix)
		return nil
	case c.item != nil:
		return c.fail(suffix, wholeMistakef(c.text, "a %s has one value and no index", c.keyed.Noun))
	default:
		return c.fail(suffix, wholeMistakef(c.partAlone(), "%s is %s and has no elements", c.nameForMessage(), c.typ.describe()))
	}
}

// selectAll selects all values of an entry that a request may repeat. It leaves other chains
// unchanged.
func (c *chain) selectAll() {
	if c.hasOneOfSeveral() {
		c.item.index = allValues
		c.typ = ListType(Type{kind: kindString})
		c.text += "[:]"
	}
}

// hasOneOfSeveral reports whether the chain ends in an entry that a request may repeat, and no
// index has been selected.
func (c *chain) hasOneOfSeveral() bool {
	return c.item != nil && c.item.index == oneValue && c.keyed.Repeatable
}

func (c *chain) add(s step, typ Type, suffix string) {
	c.text += suffix
	s.text = c.text
	c.steps = append(c.steps, s)
	c.typ, c.implicit, c.zero, c.preset = typ, false, "", nil
}

// read returns the node that reads the chain.
func (c *chain) read(m mode) (node, *mistake) {
	if c.typ.kind == kindKeyed {
		return node{}, selectorMistakef(c.text+"."+exampleEntry(c.typ), "%s is a set of values, one per %s", c.text, c.keyed.Noun)
	}
	if c.typ.kind == kindObject {
		if f, isValue := c.typ.object.Field(""); isValue {
			c.add(fieldStep(f.Get), f.Type, "")
		}
	}
	c.mode = m
	return readNode(&c.access, c.base), nil
}

// partAlone returns the chain as an expression that can stand alone in a key, without outer parentheses. It returns "" if
// the chain is a bool or cannot be part of a key.
func (c *chain) partAlone() string {
	switch {
	case !c.typ.isPart() || c.typ.kind == kindBool:
		return ""
	case c.variable == nil && len(c.steps) == 0 && strings.HasPrefix(c.text, "("):
		return c.text[1 : len(c.text)-1]
	}
	return c.nameForMessage()
}

// nameForMessage returns the name of the chain in messages. The element of a predicate has no text, so nameForMessage
// returns "#". A field of the element appears as .name.
func (c *chain) nameForMessage() string {
	if c.text == "" {
		return "#"
	}
	return c.text
}

// similar returns the chain with the known name that is most similar to a name, or with the only entry of a keyed
// variable. Otherwise it returns "".
func (c *chain) similar(name string) string {
	if names := c.typ.names(); c.typ.kind == kindKeyed && len(names) == 1 {
		return c.text + selectorOf(names[0])
	}
	if similar := failpolicy.Nearest(name, c.typ.names()); similar != "" {
		return c.text + selectorOf(similar)
	}
	return ""
}
