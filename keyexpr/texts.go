package keyexpr

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/expr-lang/expr/ast"

	"github.com/interlock-go/interlock/failpolicy"
)

// TextType is the type of values that have one text each, although people spell them in
// several ways. noun is what messages call it. one returns the text of the value that a
// text spells, and false if no value is spelled so. [Compile] refuses a literal text that
// is compared with such a value and that the value can never have. names are the texts to
// suggest, if they can be listed.
func TextType(noun string, one func(text string) (string, bool), names ...string) Type {
	return Type{kind: kindString, texts: &texts{vocabularies: []vocabulary{{noun: noun, one: one, names: names}}}}
}

// AddressType is the type of IP addresses. Each has the text of [netip.Addr]; an IPv4
// address in IPv6 is that IPv4 address. Other texts stay as they are.
func AddressType() Type {
	typ := TextType("an IP address", func(text string) (string, bool) { return oneAddress(text), true })
	typ.convert = func(v any) any {
		if text, ok := v.(string); ok {
			return oneAddress(text)
		}
		return v
	}
	return typ
}

func oneAddress(text string) string {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Unmap().String()
	}
	return text
}

func oneEndpoint(text string) string {
	if e, err := netip.ParseAddrPort(text); err == nil {
		return netip.AddrPortFrom(e.Addr().Unmap(), e.Port()).String()
	}
	return text
}

// timeType is the type of instants, whose values fromTime returns.
func timeType() Type {
	typ := TextType("a time, such as 2006-01-02T15:04:05Z", func(text string) (string, bool) {
		var t time.Time
		if text != "" && t.UnmarshalText([]byte(text)) != nil {
			return "", false
		}
		one, ok := fromTime(t).(string)
		return one, ok
	})
	typ.texts.vocabularies[0].isTime = true
	return typ
}

// fromTime returns the one text of an instant: RFC 3339 in UTC, without zeros at the end of
// the fraction. It returns "" for the zero time and nil for a year that RFC 3339 cannot
// write.
func fromTime(t time.Time) any {
	if t.IsZero() {
		return ""
	}
	text, err := t.UTC().MarshalText()
	if err != nil {
		return nil
	}
	return string(text)
}

// texts are the texts that a value may have. A nil *texts is any text.
type texts struct {
	vocabularies []vocabulary
	literals     []*ast.StringNode
}

// vocabulary is what [TextType] has.
type vocabulary struct {
	noun   string
	one    func(text string) (string, bool)
	names  []string
	isTime bool
}

// or returns the texts of a value that is one of two.
func (t *texts) or(other *texts) *texts {
	if t == nil || other == nil {
		return nil
	}
	return &texts{slices.Concat(t.vocabularies, other.vocabularies), slices.Concat(t.literals, other.literals)}
}

// have reports whether a value may have a text.
func (t *texts) have(text string) bool {
	for _, v := range t.vocabularies {
		if one, ok := v.one(text); ok && one == text {
			return true
		}
	}
	for _, l := range t.literals {
		if l.Value == text {
			return true
		}
	}
	return false
}

// meet reports the literal texts that are compared with a value that never has them.
func (c *checker) meet(a, b Type) {
	for a.kind == kindList && b.kind == kindList {
		a, b = a.element(), b.element()
	}
	c.neverEqual(a.texts, b.texts)
	c.neverEqual(b.texts, a.texts)
}

func (c *checker) neverEqual(values, literals *texts) {
	if values == nil || literals == nil || len(values.vocabularies) == 0 || len(literals.vocabularies) > 0 {
		return
	}
	for _, l := range literals.literals {
		if !values.have(l.Value) && !c.respelled(values, l) {
			v := values.vocabularies[0]
			message := "%q is not " + v.noun
			if len(v.names) > 0 {
				message += ": " + listing(v.names)
			}
			c.report(l, quoted(failpolicy.Nearest(l.Value, v.names)), message, l.Value)
		}
	}
}

// either returns the type of a value that is one of two. It reports a literal text that
// would be a second text of a value of the other.
func (c *checker) either(a, b Type) Type {
	c.respell(a.texts, b.texts)
	c.respell(b.texts, a.texts)
	return unify(a, b)
}

func (c *checker) respell(values, literals *texts) {
	if values == nil || literals == nil {
		return
	}
	for _, l := range literals.literals {
		c.respelled(values, l)
	}
}

// respelled reports a literal text that spells a value in another way than its text.
func (c *checker) respelled(values *texts, l *ast.StringNode) bool {
	for _, v := range values.vocabularies {
		if one, ok := v.one(l.Value); ok && one != l.Value {
			c.report(l, quoted(one), "the text of %q is %q", l.Value, one)
			return true
		}
	}
	return false
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return strconv.Quote(text)
}

func (t *texts) isTime() bool {
	return t != nil && len(t.vocabularies) > 0 && t.vocabularies[0].isTime
}
