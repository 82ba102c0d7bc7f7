package keyexpr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Compile compiles a template for keys of the zero [Format].
func Compile(template string, schema *Schema) (*Template, error) {
	return Format{}.Compile(template, schema)
}

// Compile compiles a key template against the variables of schema. It never panics. Its error
// joins one *[Error] for each problem, in the order of their positions. Compiling takes about
// 0.1 ms; do it at start-up.
func (f Format) Compile(template string, schema *Schema) (*Template, error) {
	if n := len(f.Prefix); n > MaxPrefixLength {
		return nil, fmt.Errorf("keyexpr: Prefix: %d bytes leave no room in keys of %d: write one of at most %d", n, DefaultMaxLength, MaxPrefixLength)
	}
	f.maxLength = cmp.Or(f.maxLength, DefaultMaxLength)
	if schema == nil {
		schema = &Schema{}
	}
	b := newBuilder(template, schema, f)
	b.build()
	if len(b.problems) > 0 {
		slices.SortStableFunc(b.problems, func(x, y *Error) int { return cmp.Or(x.Line-y.Line, x.Column-y.Column) })
		return nil, joinProblems(b.problems)
	}
	return b.template, nil
}

// CompileCondition compiles a bare boolean expression, without #{…}, against
// the variables of schema. Its error joins one *[Error] for each problem.
//
// In a condition, a missing value is empty: "", 0, false or an empty list. The type of the
// variable or of the other operand decides which. A missing enum is its zero, and a field with a
// declared default has its default. A comparison with nil still shows whether a value is present.
func CompileCondition(expression string, schema *Schema) (*Condition, error) {
	if problem := checkSize(expression, "condition"); problem != nil {
		return nil, problem
	}
	if schema == nil {
		schema = &Schema{}
	}
	if inner, ok := onlyPart(expression); ok {
		inner, _ = acceptedExpression(inner, segment{template: expression, text: inner, isExpr: true}, schema, true)
		return nil, problemAt(expression, 0, "a condition is a bare expression without #{…}", inner)
	}
	p, translated, problems := compileExpression(segment{template: expression, text: expression, isExpr: true}, schema, true)
	if len(problems) > 0 {
		for _, problem := range problems {
			problem.Suggestion = cmp.Or(translated, problem.Suggestion)
		}
		return nil, joinProblems(problems)
	}
	if p.typ.kind != kindBool && p.typ.kind != kindAny {
		suggestion := ""
		if p.ref != nil {
			suggestion, _ = acceptedExpression(suggestCondition(p.source, p.typ, false), segment{text: p.source}, schema, true)
		}
		return nil, problemAt(expression, 0, "the condition is "+p.typ.describe()+", not a bool", suggestion)
	}
	return &Condition{origin: origin{expression, slices.Sorted(maps.Keys(p.used))}, program: p}, nil
}

// onlyPart returns the expression of a template that consists of one part.
func onlyPart(template string) (string, bool) {
	segments, problem := split(template)
	if problem == nil && len(segments) == 1 && segments[0].isExpr {
		return segments[0].text, true
	}
	return "", false
}

func checkSize(source, noun string) *Error {
	switch {
	case strings.TrimSpace(source) == "":
		return problemAt(source, 0, "the "+noun+" is empty", "")
	case len(source) > MaxTemplateLength:
		return &Error{Line: 1, Column: 1, Message: fmt.Sprintf("the %s has %d bytes; at most %d are allowed", noun, len(source), MaxTemplateLength)}
	}
	return nil
}

// compileExpression compiles the expression of a part or a condition. If the expression has
// habits of another language, translated is the expression to write instead.
func compileExpression(s segment, schema *Schema, condition bool) (p *program, translated string, problems []*Error) {
	tree, err := parse(s.text, schema)
	switch {
	case err != nil:
		problems = []*Error{s.syntaxProblem(err)}
	case isLarge(&tree.Node):
		return nil, "", []*Error{s.problem(0, fmt.Sprintf("the expression has more than %d nodes; b of a < b < c counts twice", MaxNodes), "")}
	default:
		p, problems = check(tree.Node, s, schema, condition)
	}
	if len(problems) > 0 {
		translated, problems = translateExpression(s, schema, condition, problems)
		return nil, translated, problems
	}
	return p, "", nil
}

// builder collects the pieces and problems of one template.
type builder struct {
	schema   *Schema
	template *Template
	problems []*Error
	fixes    []fix
	habits   []*Error // the problems that the fixes solve
	used     map[string]bool
	braces   int // the braces that the literal text has opened and not closed

	isTranslation bool // the template is a suggestion
}

func newBuilder(template string, schema *Schema, f Format) *builder {
	return &builder{schema: schema, template: &Template{origin: origin{source: template}, format: f, list: -1}, used: map[string]bool{}}
}

func (b *builder) build() {
	source := b.template.source
	if problem := checkSize(source, "key"); problem != nil {
		b.report(problem)
		return
	}
	segments, problem := split(source)
	if problem != nil {
		b.report(problem)
		return
	}
	if prefix := b.template.format.Prefix; prefix != "" {
		b.addLiteral(segment{template: prefix, text: prefix})
	}
	constant := !slices.ContainsFunc(segments, func(s segment) bool { return s.isExpr })
	for _, s := range segments {
		b.addSegment(s, constant)
	}
	b.reportHabits()
	if len(b.problems) == 0 {
		b.checkEnds()
		b.setDelimiters()
		b.checkLength()
	}
	b.template.used = slices.Sorted(maps.Keys(b.used))
}

func (b *builder) report(problems ...*Error) { b.problems = append(b.problems, problems...) }

func (b *builder) addSegment(s segment, constant bool) {
	if !s.isExpr {
		if translated, problems := translateText(s, constant, b.schema); len(problems) > 0 {
			b.addFix(s, translated, problems)
		}
		b.checkStrayBrace(s)
		b.addLiteral(s)
		return
	}
	for _, term := range s.terms(b.schema) {
		if term.isExpr {
			b.addPart(term)
		} else {
			b.addLiteral(term)
		}
	}
}

// addFix records the translation of a segment.
func (b *builder) addFix(s segment, translated string, problems []*Error) {
	b.fixes = append(b.fixes, fix{s, translated})
	b.habits = append(b.habits, problems...)
}

// reportHabits reports the habits of other languages. Each problem suggests the whole translated
// template.
func (b *builder) reportHabits() {
	translated, sign := translateSum(applyFixes(b.fixes, b.template.source))
	if sign != nil && len(b.habits) == 0 {
		b.habits = append(b.habits, sign)
	}
	if len(b.habits) > 0 && !b.accepts(translated) {
		translated = ""
	}
	for _, p := range b.habits {
		p.Suggestion = translated
	}
	b.report(b.habits...)
}

// accepts reports whether a translated template has only problems that the source has, too. It
// accepts every template with an ellipsis, because that is only an example.
func (b *builder) accepts(translated string) bool {
	if strings.Contains(translated, unknownReference) {
		return true
	}
	v := verdict{}
	if !b.isTranslation {
		again := newBuilder(translated, b.schema, b.template.format)
		again.isTranslation = true
		again.build()
		for _, p := range again.problems {
			v.messages = append(v.messages, p.Message)
		}
	}
	known := make([]finding, len(b.problems))
	for i, p := range b.problems {
		known[i].Error = p
	}
	return v.solves(known, -1)
}

func (b *builder) addLiteral(s segment) {
	if problem := s.checkLiteral(); problem != nil {
		b.report(problem)
		return
	}
	b.addText(s.text, s.offset)
}

// checkStrayBrace reports a closing brace directly after a part if the text before the part has no
// open brace for it. The hash tag of a Redis Cluster, such as {#{path.id}}, has one.
func (b *builder) checkStrayBrace(s segment) {
	template, i := b.template.source, s.offset
	if i > 0 && strings.HasPrefix(s.text, "}") && b.braces == 0 {
		b.report(s.problem(0, `"}" closes nothing here: the part has ended before it`, template[:i]+template[i+1:]+`, or #{"}"} for a literal "}"`))
	}
}

// addText appends literal text and joins it with the literal text before it.
func (b *builder) addText(text string, offset int) {
	b.braces = max(b.braces+strings.Count(text, "{")-strings.Count(text, "}"), 0)
	t := b.template
	if n := len(t.pieces); n > 0 && t.pieces[n-1].program == nil {
		t.pieces[n-1].literal += text
		return
	}
	t.pieces = append(t.pieces, piece{literal: text, offset: offset})
}

func (b *builder) addPart(s segment) {
	if strings.TrimSpace(s.text) == "" {
		b.report(s.problem(-len(opening), "the part is empty", opening+exampleReference(b.schema)+"}"))
		return
	}
	p, translated, problems := compileExpression(s, b.schema, false)
	if translated != "" {
		b.addFix(s, translated, problems)
		return
	}
	b.report(problems...)
	if p == nil {
		return
	}
	maps.Copy(b.used, p.used)
	if problem := b.addProgram(p, s); problem != nil {
		b.report(problem)
	}
}

// addProgram appends the piece of a compiled part. It returns a problem if a key cannot contain
// values of its type.
func (b *builder) addProgram(p *program, s segment) *Error {
	t := b.template
	if p.isConstant() {
		return b.addConstant(p, s)
	}
	if m := p.checkPart(b.schema); m != nil {
		suggestion, _ := acceptedExpression(m.instead, s, b.schema, false)
		return s.problem(0, m.message, suggestion)
	}
	list := p.typ.kind == kindList
	if list && t.list >= 0 {
		return s.problem(0, "a key can have one list only", "")
	}
	if n := len(t.pieces); n > 0 && t.pieces[n-1].program != nil {
		hash := s.offset - len(opening)
		return s.problem(-len(opening), "two parts need literal text between them, or different values make the same key", s.template[:hash]+":"+s.template[hash:])
	}
	if list {
		t.list = len(t.pieces)
	}
	t.pieces = append(t.pieces, piece{program: p, list: list, offset: s.offset})
	return nil
}

// addConstant appends a part without variables as literal text.
func (b *builder) addConstant(p *program, s segment) *Error {
	text, m := p.constantText()
	if m != nil {
		return s.problem(0, m.message, "")
	}
	b.addText(text, s.offset)
	return nil
}

// setDelimiters gives every part the character that ends its values.
func (b *builder) setDelimiters() {
	pieces := b.template.pieces
	for i := range pieces {
		if pieces[i].program == nil || i+1 == len(pieces) {
			continue
		}
		r, _ := utf8.DecodeRuneInString(pieces[i+1].literal)
		switch {
		case r != '%' && !strings.ContainsRune(upperHex, r): // the encoding uses these characters itself
			pieces[i].delimiter = r
		case i+2 < len(pieces): // the last part of a key needs no delimiter
			b.report(problemAt(b.template.source, pieces[i+1].offset, fmt.Sprintf("the text between two parts cannot begin with %q, which also occurs in encoded values", r),
				"a separator such as : first"))
		}
	}
}

// checkEnds reports white space with which every key would begin or end, because readers of the
// rule do not see it.
func (b *builder) checkEnds() {
	source, pieces := b.template.source, b.template.pieces
	first, last := pieces[0].literal, pieces[len(pieces)-1].literal
	trimmed := strings.TrimRight(source, " ")
	if strings.HasPrefix(source, " ") || strings.HasPrefix(first, " ") {
		noun := "key"
		if strings.HasPrefix(b.template.format.Prefix, " ") {
			noun = "prefix"
		}
		b.report(problemAt(source, 0, "the "+noun+" begins with white space, which would be part of the lock's name", "it without that"))
	}
	if trimmed != source || strings.HasSuffix(last, " ") {
		b.report(problemAt(source, len(trimmed), "the key ends with white space, which would be part of the lock's name", "it without that"))
	}
}

// checkLength reports a template whose literal text alone is too long for a key, because only the
// hash would distinguish its keys.
func (b *builder) checkLength() {
	shortest := 0
	for i := range b.template.pieces {
		shortest += max(len(b.template.pieces[i].literal), 1)
	}
	limit := b.template.format.maxLength
	if shortest <= limit {
		return
	}
	subject := "every key has at least"
	if _, ok := b.template.Constant(); ok {
		subject = "the key has"
	}
	b.report(&Error{Line: 1, Column: 1, Message: fmt.Sprintf("%s %d bytes; at most %d are allowed", subject, shortest, limit)})
}
