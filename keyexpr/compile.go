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

// Format is how keys are built. The zero Format has no prefix, and encodes and shortens.
type Format struct {
	// Prefix is literal text before every key. It is not a template: a #{ in it stands for
	// itself. Positions in errors do not count it. At most [MaxPrefixLength] bytes.
	Prefix string
	// Strict makes a value that would have to be encoded, and a key that would have to be
	// shortened, an error. Use it while programs that build the same keys without encoding share
	// the locks. A value with a colon is refused, so an IPv6 address and the route of a Gin route
	// with parameters always are.
	Strict bool

	maxLength int // 0 is DefaultMaxLength
}

// Compile compiles a template for keys of the zero [Format].
func Compile(template string, schema *Schema) (*Template, error) {
	return Format{}.Compile(template, schema)
}

// Compile compiles a key template against the variables of schema. It never
// panics; its error joins one *[Error] per problem, in the order of their
// positions. Compiling takes about 0.1 ms and belongs to start-up.
func (f Format) Compile(template string, schema *Schema) (*Template, error) {
	if n := len(f.Prefix); n > MaxPrefixLength {
		return nil, fmt.Errorf("keyexpr: Prefix: %d bytes leave no room in keys of %d: write one of at most %d", n, DefaultMaxLength, MaxPrefixLength)
	}
	f.maxLength = cmp.Or(f.maxLength, DefaultMaxLength)
	if schema == nil {
		schema = &Schema{}
	}
	b := &builder{schema: schema, template: &Template{origin: origin{source: template}, format: f, list: -1}, used: map[string]bool{}}
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
	fixes    []fix
	habits   []*Error
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
	if prefix := b.template.format.Prefix; prefix != "" {
		b.literal(segment{template: prefix, text: prefix})
	}
	constant := !slices.ContainsFunc(segments, func(s segment) bool { return s.isExpr })
	for _, s := range segments {
		b.segment(s, constant)
	}
	b.translate()
	if len(b.problems) == 0 {
		b.ends()
		b.delimit()
		b.measure()
	}
	b.template.used = slices.Sorted(maps.Keys(b.used))
}

func (b *builder) segment(s segment, constant bool) {
	if !s.isExpr {
		if meant, problems := s.foreign(constant, b.schema); len(problems) > 0 {
			b.fix(s, meant, problems)
		}
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

// fix notes what was meant by a stretch of the template.
func (b *builder) fix(s segment, meant string, problems []*Error) {
	b.fixes = append(b.fixes, fix{s, meant})
	b.habits = append(b.habits, problems...)
}

// translate reports the habits of other languages, all with the whole template to write.
func (b *builder) translate() {
	meant, sign := unsummed(apply(b.fixes, b.template.source))
	if sign != nil && len(b.habits) == 0 {
		b.habits = append(b.habits, sign)
	}
	for _, p := range b.habits {
		p.Suggestion = meant
	}
	b.add(b.habits...)
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
	p, meant, problems := compileExpression(s, b.schema, false)
	if meant != "" {
		b.fix(s, meant, problems)
		return
	}
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
	_, valued := typ.object.Field("")
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

// alone evaluates a program without variables.
func (p *program) alone() (v any, failure *EvalError) {
	var err error
	defer func() { failure, _ = errors.AsType[*EvalError](err) }()
	defer new(origin).caught(&err)
	return p.run(newEvaluation(Values(nil))), nil
}

// constant turns a part without variables into literal text.
func (b *builder) constant(p *program, s segment) *Error {
	v, failure := p.alone()
	if failure != nil {
		return s.at(0, failure.Detail, "")
	}
	text, _ := textOfScalar(v)
	constant, ok := text.(string)
	if !ok {
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
		if strings.HasPrefix(b.template.format.Prefix, " ") {
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
	limit := b.template.format.maxLength
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

// Limits.
const (
	// DefaultMaxLength is the longest key in bytes; a longer one is shortened.
	DefaultMaxLength = 512
	// DefaultMaxElements is the most keys of one template.
	DefaultMaxElements = 100
	// MaxTemplateLength is the longest template or condition in bytes.
	MaxTemplateLength = 4096
	// MaxNodes is the most nodes in one expression. What is compared twice, as b in
	// a < b < c, counts twice.
	MaxNodes = 200

	// MaxPrefixLength is the longest prefix in bytes: an overlong key keeps some of what
	// follows, and ends in a hash.
	MaxPrefixLength = DefaultMaxLength - len(hashMark) - hashDigits - 14
)
