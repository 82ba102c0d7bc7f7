package keyexpr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Compile compiles a key template against the variables of schema. It never
// panics; its error joins one *[Error] per problem, in the order of their
// positions. Compiling takes about 0.1 ms and belongs to start-up.
func Compile(template string, schema *Schema, opts ...Option) (*Template, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	b := &builder{schema: orEmpty(schema), template: &Template{source: template, config: cfg, list: -1}}
	b.build()
	if len(b.problems) > 0 {
		return nil, b.joined()
	}
	return b.template, nil
}

func orEmpty(s *Schema) *Schema {
	if s == nil {
		return &Schema{slots: map[string]int{}}
	}
	return s
}

// builder collects the pieces and problems of one template.
type builder struct {
	schema   *Schema
	template *Template
	starts   []int // of each piece, for messages
	problems []*Error
	used     map[string]bool
}

func (b *builder) build() {
	source := b.template.source
	if problem := checkSize(source, "key"); problem != nil {
		b.add(problem)
		return
	}
	segments, problem := split(source)
	if problem != nil {
		b.add(problem)
		return
	}
	for _, foreign := range checkForeign(source, segments, b.schema) {
		b.add(foreign)
	}
	b.prefix()
	b.used = map[string]bool{}
	for _, s := range segments {
		b.segment(s)
	}
	if len(b.problems) == 0 {
		b.delimit()
		b.measure()
	}
	for name := range b.used {
		b.template.used = append(b.template.used, name)
	}
	slices.Sort(b.template.used)
}

func (b *builder) segment(s segment) {
	if !s.isExpr {
		b.literal(s)
		return
	}
	for _, term := range s.terms(b.schema) {
		if term.isExpr {
			b.part(term)
		} else {
			b.literal(term)
		}
	}
}

func checkSize(source, what string) *Error {
	switch {
	case strings.TrimSpace(source) == "":
		return at(source, 0, "the "+what+" is empty", "")
	case len(source) > MaxTemplateLength:
		short := &Error{Template: "", Line: 1, Column: 1}
		short.Message = fmt.Sprintf("the %s has %d bytes; at most %d are allowed", what, len(source), MaxTemplateLength)
		return short
	}
	return nil
}

func (b *builder) add(problem *Error) { b.problems = append(b.problems, problem) }

// prefix begins every key with the text of [Prefix].
func (b *builder) prefix() {
	text := b.template.config.prefix
	if text == "" {
		return
	}
	if problem := checkLiteral(text, segment{text: text}); problem != nil {
		b.add(problem)
		return
	}
	b.text(text, 0)
}

func (b *builder) literal(s segment) {
	if problem := checkLiteral(b.template.source, s); problem != nil {
		b.add(problem)
		return
	}
	b.text(s.text, s.offset)
}

// text appends literal text, joined with literal text before it.
func (b *builder) text(text string, offset int) {
	t := b.template
	if n := len(t.pieces); n > 0 && t.pieces[n-1].program == nil {
		t.pieces[n-1].literal += text
		return
	}
	t.pieces = append(t.pieces, piece{literal: text})
	b.starts = append(b.starts, offset)
}

func (b *builder) part(s segment) {
	if strings.TrimSpace(s.text) == "" {
		b.add(at(b.template.source, s.offset-len(opening), "the part is empty", b.schema.emptyPart()))
		return
	}
	p, problems := compileExpression(s.text, b.schema, false)
	for _, problem := range problems {
		b.add(problem.in(b.template.source, s))
	}
	if p == nil {
		return
	}
	p.source = strings.TrimSpace(s.text)
	for name := range p.used {
		b.used[name] = true
	}
	if problem := b.accept(p, s); problem != nil {
		b.add(problem)
	}
}

func (s *Schema) emptyPart() string { return opening + s.example() + "}" }

// in places a problem of an expression in its template.
func (p problem) in(template string, s segment) *Error {
	return at(template, s.offset+byteOffset(s.text, p.offset), p.message, p.suggestion)
}

// accept makes a piece of a compiled part, if its type can be part of a key.
func (b *builder) accept(p *program, s segment) *Error {
	t := b.template
	if p.constant() && p.typ.kind != kindList {
		return b.constant(p, s)
	}
	typ := p.typ
	list := typ.kind == kindList
	if list {
		typ = typ.element()
	}
	if !typ.isPart() {
		return at(t.source, s.offset, notPart(p, list), partSuggestion(p, typ, list))
	}
	if list && t.list >= 0 {
		return at(t.source, s.offset, "a key can have one list only", "")
	}
	if n := len(t.pieces); n > 0 && t.pieces[n-1].program != nil {
		return at(t.source, s.offset-len(opening), "two parts need literal text between them, or different values make the same key",
			b.separated(s))
	}
	if list {
		t.list = len(t.pieces)
	}
	t.pieces = append(t.pieces, piece{program: p, list: list})
	b.starts = append(b.starts, s.offset)
	return nil
}

func (b *builder) separated(s segment) string {
	source, hash := b.template.source, s.offset-len(opening)
	return source[:hash] + ":" + source[hash:]
}

func (t Type) isPart() bool {
	return t.kind == kindString || t.kind == kindBool || t.kind == kindInt || t.kind == kindAny
}

func notPart(p *program, list bool) string {
	what := p.typ.describe()
	if list {
		what = "a list, and each element is " + p.typ.element().describe()
	}
	return p.source + " is " + what + "; a key part is a string, a bool, an integer or an enum"
}

func partSuggestion(p *program, typ Type, list bool) string {
	if typ.kind != kindObject {
		return ""
	}
	name := firstPartField(typ.object)
	switch {
	case name == "":
		return ""
	case list:
		return "map(" + p.source + ", ." + name + ")"
	}
	return p.source + "." + name
}

// firstPartField names a field that can be a part: id if there is one.
func firstPartField(o Object) string {
	names := slices.Sorted(slices.Values(o.Fields()))
	slices.SortStableFunc(names, func(a, b string) int { return rank(o, a) - rank(o, b) })
	for _, name := range names {
		if f, ok := o.Field(name); ok && f.Type.isPart() {
			return name
		}
	}
	return ""
}

// rank puts identifiers first, then other texts.
func rank(o Object, name string) int {
	if folded := fold(name); folded == "id" || folded == "value" {
		return 0
	}
	if f, ok := o.Field(name); ok && f.Type.kind == kindString {
		return 1
	}
	return 2
}

// constant turns a part without variables into literal text.
func (b *builder) constant(p *program, s segment) *Error {
	v, failure := p.run(Values(nil), new(meter))
	if failure != nil {
		return at(b.template.source, s.offset, failure.Detail, "")
	}
	text, err := ownString(v)
	constant, ok := text.(string)
	if err != nil || !ok {
		return at(b.template.source, s.offset, p.source+" is "+describe(v)+"; a key part is a string, a bool, an integer or an enum", "")
	}
	if constant == "" {
		return at(b.template.source, s.offset, "the part is always empty", "")
	}
	if problem := checkLiteral(b.template.source, segment{text: constant}); problem != nil {
		return at(b.template.source, s.offset, problem.Message, "")
	}
	b.text(constant, s.offset)
	return nil
}

// delimit gives every part the character that ends its values.
func (b *builder) delimit() {
	pieces := b.template.pieces
	for i := range pieces {
		if pieces[i].program == nil || i+1 == len(pieces) {
			continue
		}
		r, _ := utf8.DecodeRuneInString(pieces[i+1].literal)
		switch {
		case canDelimit(r):
			pieces[i].delimiter = r
		case i+2 < len(pieces): // at the end of a key nothing has to be told apart
			b.add(at(b.template.source, b.starts[i+1], fmt.Sprintf("the text between two parts cannot begin with %q, which also occurs in encoded values", r),
				"a separator such as : first"))
		}
	}
}

// measure refuses a template whose literal text alone is too long: a constant that is
// no key, or one of whose every key only a hash would tell the requests apart.
func (b *builder) measure() {
	shortest := 0
	for i := range b.template.pieces {
		shortest += max(len(b.template.pieces[i].literal), 1)
	}
	limit := b.template.config.maxLength
	if shortest <= limit {
		return
	}
	what := "every key has at least"
	if _, ok := b.template.Constant(); ok {
		what = "the key has"
	}
	b.add(&Error{Line: 1, Column: 1, Message: fmt.Sprintf("%s %d bytes; at most %d are allowed", what, shortest, limit)})
}

func (b *builder) joined() error {
	slices.SortStableFunc(b.problems, func(x, y *Error) int {
		if x.Line != y.Line {
			return x.Line - y.Line
		}
		return x.Column - y.Column
	})
	all := make([]error, len(b.problems))
	for i, p := range b.problems {
		all[i] = p
	}
	return errors.Join(all...)
}
