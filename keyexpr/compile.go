package keyexpr

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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
	if schema == nil {
		schema = &Schema{}
	}
	b := &builder{schema: schema, template: &Template{origin: origin{source: template}, config: cfg, list: -1}, used: map[string]bool{}}
	b.build()
	if len(b.problems) > 0 {
		slices.SortStableFunc(b.problems, func(x, y *Error) int { return cmp.Or(x.Line-y.Line, x.Column-y.Column) })
		return nil, joined(b.problems)
	}
	return b.template, nil
}

// builder collects the pieces and problems of one template.
type builder struct {
	schema   *Schema
	template *Template
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
	b.add(checkForeign(segments, b.schema)...)
	if prefix := b.template.config.prefix; prefix != "" {
		b.literal(segment{template: prefix, text: prefix})
	}
	for _, s := range segments {
		b.segment(s)
	}
	if len(b.problems) == 0 {
		b.ends()
		b.delimit()
		b.measure()
	}
	b.template.used = slices.Sorted(maps.Keys(b.used))
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
		return &Error{Line: 1, Column: 1, Message: fmt.Sprintf("the %s has %d bytes; at most %d are allowed", what, len(source), MaxTemplateLength)}
	}
	return nil
}

func (b *builder) add(problems ...*Error) { b.problems = append(b.problems, problems...) }

func (b *builder) literal(s segment) {
	if problem := s.checkLiteral(); problem != nil {
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
	t.pieces = append(t.pieces, piece{literal: text, offset: offset})
}

func (b *builder) part(s segment) {
	if strings.TrimSpace(s.text) == "" {
		b.add(s.at(-len(opening), "the part is empty", opening+b.schema.example()+"}"))
		return
	}
	p, problems := compileExpression(s, b.schema, false)
	b.add(problems...)
	if p == nil {
		return
	}
	maps.Copy(b.used, p.used)
	if problem := b.accept(p, s); problem != nil {
		b.add(problem)
	}
}

// accept makes a piece of a compiled part, if its type can be part of a key.
func (b *builder) accept(p *program, s segment) *Error {
	t := b.template
	if len(p.used) == 0 && p.typ.kind != kindList {
		return b.constant(p, s)
	}
	typ := p.typ
	list := typ.kind == kindList
	if list {
		typ = typ.element()
	}
	if !typ.isPart() {
		return s.at(0, notPart(p, list), partSuggestion(p, typ, list))
	}
	if list && t.list >= 0 {
		return s.at(0, "a key can have one list only", "")
	}
	if n := len(t.pieces); n > 0 && t.pieces[n-1].program != nil {
		hash := s.offset - len(opening)
		return s.at(-len(opening), "two parts need literal text between them, or different values make the same key", s.template[:hash]+":"+s.template[hash:])
	}
	if list {
		t.list = len(t.pieces)
	}
	t.pieces = append(t.pieces, piece{program: p, list: list, offset: s.offset})
	return nil
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
	_, valued := typ.object.(Valued)
	switch {
	case valued && list:
		return "map(" + p.source + ", #)"
	case name == "":
		return ""
	case list:
		return "map(" + p.source + ", ." + name + ")"
	}
	return p.source + "." + name
}

// firstPartField names a field that can be a part: id if there is one, then a text.
func firstPartField(o Object) string {
	best, least := "", 3
	for _, name := range slices.Sorted(slices.Values(o.Fields())) {
		rank := 2
		f, _ := o.Field(name)
		switch {
		case !f.Type.isPart():
			continue
		case strings.EqualFold(name, "id") || strings.EqualFold(name, "value"):
			rank = 0
		case f.Type.kind == kindString:
			rank = 1
		}
		if rank < least {
			best, least = name, rank
		}
	}
	return best
}

// constant turns a part without variables into literal text.
func (b *builder) constant(p *program, s segment) *Error {
	v, failure := p.run(Values(nil), new(meter))
	if failure != nil {
		return s.at(0, failure.Detail, "")
	}
	text, err := ownString(v)
	constant, ok := text.(string)
	if err != nil || !ok {
		return s.at(0, p.source+" is "+describe(v)+"; a key part is a string, a bool, an integer or an enum", "")
	}
	if constant == "" {
		return s.at(0, "the part is always empty", "")
	}
	if problem := (segment{text: constant}).checkLiteral(); problem != nil {
		return s.at(0, problem.Message, "")
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
		case r != '%' && !strings.ContainsRune(upperHex, r): // those of the encoding cannot be encoded away
			pieces[i].delimiter = r
		case i+2 < len(pieces): // at the end of a key nothing has to be told apart
			b.add(at(b.template.source, pieces[i+1].offset, fmt.Sprintf("the text between two parts cannot begin with %q, which also occurs in encoded values", r),
				"a separator such as : first"))
		}
	}
}

// ends refuses white space at the ends of every key, which no reader of the rule sees.
func (b *builder) ends() {
	source, pieces := b.template.source, b.template.pieces
	first, last := pieces[0].literal, pieces[len(pieces)-1].literal
	trimmed := strings.TrimRight(source, " ")
	if strings.HasPrefix(source, " ") || strings.HasPrefix(first, " ") {
		what := "key"
		if strings.HasPrefix(b.template.config.prefix, " ") {
			what = "prefix"
		}
		b.add(at(source, 0, "the "+what+" begins with white space, which would be part of the lock's name", "it without that"))
	}
	if trimmed != source || strings.HasSuffix(last, " ") {
		b.add(at(source, len(trimmed), "the key ends with white space, which would be part of the lock's name", "it without that"))
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

func joined(problems []*Error) error {
	all := make([]error, len(problems))
	for i, p := range problems {
		all[i] = p
	}
	return errors.Join(all...)
}
