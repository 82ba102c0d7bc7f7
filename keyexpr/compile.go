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
	b := &builder{schema: schema, template: &Template{origin: origin{source: template}, format: f, list: -1}, used: map[string]bool{}}
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
	if inner, ok := onlyPart(expression); ok {
		return nil, problemAt(expression, 0, "a condition is a bare expression without #{…}", inner)
	}
	if schema == nil {
		schema = &Schema{}
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
			suggestion = suggestBool(p.source, p.typ)
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
		translated, problems = translateExpression(s, schema, problems)
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
	for _, p := range b.habits {
		p.Suggestion = translated
	}
	b.report(b.habits...)
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
	if len(p.used) == 0 && p.typ.kind != kindList {
		return b.addConstant(p, s)
	}
	typ := p.typ
	list := typ.kind == kindList
	if list {
		typ = typ.element()
	}
	if !typ.isPart() {
		return s.problem(0, describeNotPart(p, list, b.schema), suggestPart(p, typ, list))
	}
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

func describeNotPart(p *program, list bool, schema *Schema) string {
	typ, what := p.typ, ""
	if list {
		typ, what = p.typ.element(), "a list, and each element is "
	}
	advice := ""
	if typ.kind == kindFloat {
		advice = ": " + adviseProgram(schema, "its text")
	}
	return p.source + " is " + what + typ.describe() + "; a key part is a string, a bool, an integer or an enum" + advice
}

// suggestPart suggests a field of an object that can be a part.
func suggestPart(p *program, typ Type, list bool) string {
	if typ.kind != kindObject {
		return ""
	}
	name := firstPartField(typ.object)
	_, isValue := typ.object.Field("")
	switch {
	case isValue && list:
		return "map(" + p.source + ", #)"
	case name == "":
		return ""
	case list:
		return "map(" + p.source + ", ." + name + ")"
	}
	return p.source + "." + name
}

// firstPartField returns a field that can be a part. It prefers id or value, then a text.
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

// addConstant appends a part without variables as literal text.
func (b *builder) addConstant(p *program, s segment) *Error {
	v, failure := evalConstant(p)
	if failure != nil {
		return s.problem(0, failure.Detail, "")
	}
	text, _ := scalarText(v)
	constant, ok := text.(string)
	if !ok {
		return s.problem(0, p.source+" is "+describe(v)+"; a key part is a string, a bool, an integer or an enum", "")
	}
	if constant == "" {
		return s.problem(0, "the part is always empty", "")
	}
	if problem := (segment{text: constant}).checkLiteral(); problem != nil {
		return s.problem(0, problem.Message, "")
	}
	b.addText(constant, s.offset)
	return nil
}

// evalConstant evaluates a program that reads no variables.
func evalConstant(p *program) (v any, failure *EvalError) {
	var err error
	defer func() { failure, _ = errors.AsType[*EvalError](err) }()
	defer new(origin).recoverError(&err)
	return p.run(newEvaluation(Values(nil))), nil
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
