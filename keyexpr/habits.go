package keyexpr

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser/operator"

	"github.com/interlock-go/interlock/failpolicy"
)

// place says where a habit is looked for.
type place uint8

const (
	inConstant place = iota // the text of a template without parts
	inText                  // any text outside of parts
	inPart                  // an expression that does not compile
	inCall                  // likewise, by the name of a function, method or operator
)

// habit is what people write who come from another language, and what to write here.
type habit struct {
	place   place
	written string // a regular expression, or the names in a call
	message string
	// instead takes its place. @1 is what the name in the first group is called here, and @ is
	// some variable. In a call, {1} is the first operand or argument, and {n} the length of the
	// last. Empty if only the program can know the value.
	instead string
}

var habits = []habit{ //nolint:gochecknoglobals // a table that is only read
	{inText, `\$\{([^{}]*)\}?`, `"${" begins no part here`, "#{@1}"},
	{inText, `\{\{([^{}]*)\}\}`, `"{{" begins no part here`, "#{@1}"},
	{inConstant, spelName, `"#name" begins no part here`, "#{@1}"},
	{inConstant, `%[sdvq]`, `"%s" begins no part here`, "#{@}"},
	{inConstant, `\{([\pL_][\pL\pN_.]*)\}`, `"{name}" begins no part here`, "#{@1}"},
	{inConstant, `:([\pL_][\pL\pN_]*)`, `":name" begins no part here`, ":#{@1}"},

	{inPart, spelName, "#${1} is not known here: names stand without #", "@1"},
	{inPart, operand + `\.!\[([^\[\]]*)\]`, ".![…] is not known here: a projection is map(…)", "map($1, .$2)"},
	{inPart, operand + `\.[?^$]\[([^\[\]]*)\]`, ".?[…] is not known here: a selection is filter(…)", "filter($1, .$2)"},
	{inPart, operand + `\[\*\]\.([\pL\pN_.]+)`, "[*] is not known here: a field of each element is map(…)", "map($1, .$2)"},
	{inPart, operand + `\[\*\]($|[^.])`, "[*] is not known here: all elements are [:]", "$1[:]$2"},
	{inPart, `\bT\([^()]*\)(?:\.[\pL\pN_]+(?:\([^()]*\))?)*`, "types and their static methods cannot be used: register a variable for the value", ""},
	{inPart, `\?:`, "?: is not known here", "??"},
	{inPart, `(^|[^.\pL\pN_])null\b`, "null is not known here", "${1}nil"},
	{inPart, `\blet\b`, "let is not known here: write the value where it is used, or register a variable", ""},
	{inPart, argument, "in is the argument of a function, which is not known here", ""},
	{inPart, `!==`, "!== is not known here", "!="},
	{inPart, `===`, "=== is not known here", "=="},
	{inPart, `=>|->`, "functions cannot be written: map, filter, any and all take a field or a condition, as in map(body.items, .id)", ""},
	{inPart, `([^=!<>])=([^=])`, "= is not known here", "$1==$2"},
	{inPart, `\beq\b`, "eq is not known here", "=="},
	{inPart, `\bne\b`, "ne is not known here", "!="},
	{inPart, `\b(header|query|cookie|form|metadata)\.([\pL_][\pL\pN_]*(?:-[\pL_][\pL\pN_]*)+)`, "$1.$2 is a subtraction", `$1["$2"]`},
	{inPart, `\bcontains\(`, "contains is not known here: in asks for an element of a list", "contains_("},
	{inPart, `\bstartsWith\(`, "startsWith is not known here", "startsWith_("},
	{inPart, `\bendsWith\(`, "endsWith is not known here", "endsWith_("},

	{inCall, "toString String valueOf", "", "string({1})"},
	{inCall, "toLowerCase toLower", "", "lower({1})"},
	{inCall, "toUpperCase toUpper", "", "upper({1})"},
	{inCall, "trim strip trimSpace", "", "trim({1})"},
	{inCall, "parseInt parseLong intValue longValue", "", "int({1})"},
	{inCall, "normalize", "", "nfc({1})"},
	{inCall, "length size", "", "len({1})"},
	{inCall, "isEmpty", "", "len({1}) == 0"},
	{inCall, "equals", "", "{1} == {2}"},
	{inCall, "equalsIgnoreCase", "", "lower({1}) == lower({2})"},
	{inCall, "concat", "", "{1} + {2}"},
	{inCall, "get", "", "{1}[{2}]"},
	{inCall, "substring substr slice", "", "{1}[{2}:{3}]"},
	{inCall, "take", "", "{1}[:{2}]"},
	{inCall, "startsWith startsWith_ hasPrefix", "", "{1}[:{n}] == {2}"},
	{inCall, "endsWith endsWith_ hasSuffix", "", "{1}[-{n}:] == {2}"},
	{inCall, "contains contains_ includes", "", "{2} in {1}[:]"},
	{inCall, "find", "", "first(filter({1}, {2}))"},
	{inCall, "findLast", "", "last(filter({1}, {2}))"},
	{inCall, "count", "", "len(filter({1}, {2}))"},
	{inCall, "none", "", "not any({1}, {2})"},
	{inCall, "one", "", "len(filter({1}, {2})) == 1"},
	{inCall, "max", "", "{1} > {2} ? {1} : {2}"},
	{inCall, "min", "", "{1} < {2} ? {1} : {2}"},
	{inCall, "abs", "", "{1} < 0 ? -{1} : {1}"},
}

const (
	// spelName is a path of names, which may end with a call of a getter.
	spelName = `#([\pL_][\pL\pN_]*(?:\.[\pL_][\pL\pN_]*)*(?:\(\))?)`
	// argument is a field of the argument of a function.
	argument = `(?:^|[^.\pL\pN_])in\.[\pL_]`
	// operand is what may stand before a selector.
	operand = `([\pL_][\pL\pN_.]*(?:\[[^\[\]*]*\][\pL\pN_.]*)*)`
)

// patterns are the regular expressions of the table.
var patterns = compiledHabits() //nolint:gochecknoglobals // a table that is only read

func compiledHabits() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for _, h := range habits {
		if h.place != inCall {
			all[h.written] = regexp.MustCompile(h.written)
		}
	}
	return all
}

// replace writes a text without the habit. It also returns a problem for each place that has it.
func (h *habit) replace(s segment, schema *Schema) (meant string, problems []*Error) {
	var b strings.Builder
	done, pattern := 0, patterns[h.written]
	for _, m := range pattern.FindAllStringSubmatchIndex(s.outsideOfTexts(), -1) {
		name, start := "", m[0]
		if len(m) > 2 {
			name = s.text[m[2]:m[3]]
		}
		if !h.meant(schema, name) {
			continue
		}
		if strings.Contains(h.instead, "$1") || strings.Contains(h.instead, "${1}") { // it is what follows the first group
			start = m[3]
		}
		message := string(pattern.ExpandString(nil, h.message, s.text, m))
		if !s.isExpr {
			message = fmt.Sprintf("%s: %q would be literal text", h.message, s.text[m[0]:m[1]])
		}
		problems = append(problems, s.at(start, message, ""))
		instead := strings.NewReplacer("@1", schema.correction(name), "@", schema.example()).Replace(h.instead)
		b.WriteString(s.text[done:m[0]] + string(pattern.ExpandString(nil, instead, s.text, m)))
		done = m[1]
	}
	return b.String() + s.text[done:], problems
}

// meant reports whether what looks like a habit is one.
func (h *habit) meant(schema *Schema, name string) bool {
	switch {
	case strings.HasPrefix(h.message, `"{name}"`):
		_, known := schema.find(name)
		return known
	case strings.HasPrefix(h.message, `":name"`):
		return slices.ContainsFunc(schema.variables, func(v Variable) bool {
			return v.Type.kind == kindKeyed && slices.Contains(v.Type.keyed.Known, name)
		})
	case h.written == argument:
		return !slices.Contains(schema.Variables(), argumentName)
	case h.place == inPart && h.written == spelName: // pointers of expr
		return name != "index" && name != "acc"
	}
	return true
}

var quotedText = regexp.MustCompile("'(?:[^'\\\\]|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")

// outsideOfTexts hides the texts in an expression. All offsets stay.
func (s segment) outsideOfTexts() string {
	if !s.isExpr {
		return s.text
	}
	return quotedText.ReplaceAllStringFunc(s.text, func(text string) string {
		return text[:1] + strings.Repeat("~", len(text)-2) + text[:1]
	})
}

// fix is what was meant by a stretch of a template.
type fix struct {
	segment

	meant string
}

// apply writes what was meant into a template.
func apply(fixes []fix, template string) string {
	for _, f := range slices.Backward(fixes) {
		template = template[:f.offset] + f.meant + template[f.offset+len(f.text):]
	}
	return template
}

// foreign finds the habits in a text outside of parts.
func (s segment) foreign(constant bool, schema *Schema) (meant string, problems []*Error) {
	for i := range habits {
		h := &habits[i]
		isName := h.written == spelName && sumName.MatchString(s.text)
		if h.place > inText || h.place == inConstant && !constant && !isName {
			continue
		}
		if meant, problems = h.replace(s, schema); len(problems) > 0 {
			return meant, problems
		}
	}
	return s.text, nil
}

// translated finds the habits in an expression that does not compile. Without any it returns
// the problems of the expression.
func (c *checker) translated() (meant string, problems []*Error) {
	s := c.source
	for i := range habits {
		h := &habits[i]
		if h.place != inPart {
			continue
		}
		_, found := h.replace(c.source, c.schema) // where it is in the source
		problems = append(problems, found...)
		if len(found) > 0 && h.instead == "" {
			return "", problems
		}
		s.text, _ = h.replace(s, c.schema)
	}
	t := &translation{checker: c}
	if tree, err := c.parse(s.text); err == nil && !isLarge(&tree.Node) {
		ast.Walk(&tree.Node, t)
		if len(t.problems) > 0 {
			s.text = textOf(tree.Node)
		}
	}
	if len(problems) == 0 {
		problems = t.problems
	}
	switch {
	case len(problems) == 0:
		return "", c.problems
	case unnamed.MatchString(s.text):
		for _, p := range problems {
			p.Message += ": register a variable for the value"
		}
		return "", problems
	}
	return s.text, problems
}

// unnamed is a call that stands in the place of an operator of expr, and was not translated.
var unnamed = regexp.MustCompile(`\b(contains|startsWith|endsWith)_\(`)

// translation writes calls that this language does not have as what it has.
type translation struct {
	checker  *checker
	problems []*Error
}

// Visit implements [ast.Visitor].
func (t *translation) Visit(n *ast.Node) {
	name, message := "", "%s is not known here"
	var args []ast.Node
	switch x := (*n).(type) {
	case *ast.BuiltinNode:
		name, args = x.Name, x.Arguments
	case *ast.BinaryNode:
		name, args = x.Operator, []ast.Node{x.Left, x.Right}
	case *ast.CallNode:
		args = x.Arguments
		switch callee := x.Callee.(type) {
		case *ast.IdentifierNode:
			name = callee.Value
		case *ast.MemberNode:
			name, message, args = methodName(callee), "methods cannot be called: .%s()", append([]ast.Node{callee.Node}, args...)
		}
	}
	if _, known := functions[name]; name == "" || known && !strings.HasPrefix(message, "methods") {
		return
	}
	instead := t.checker.instead(name, args)
	if instead == "" {
		return
	}
	tree, err := t.checker.parse("map([], " + instead + ")") // it may be in a predicate
	if err != nil {
		return
	}
	made, _ := tree.Node.(*ast.BuiltinNode)                //nolint:errcheck // as it is written
	predicate, _ := made.Arguments[1].(*ast.PredicateNode) //nolint:errcheck // as it is written
	offset := byteOffset(t.checker.source.text, (*n).Location().From)
	t.problems = append(t.problems, t.checker.source.at(offset, fmt.Sprintf(message, strings.TrimSuffix(name, "_")), ""))
	*n = predicate.Node
}

func methodName(callee ast.Node) string {
	if member, ok := callee.(*ast.MemberNode); ok {
		if name, ok := member.Property.(*ast.StringNode); ok {
			return name.Value
		}
	}
	return ""
}

// instead is what stands here in the place of a call, empty if nothing does.
func (c *checker) instead(name string, args []ast.Node) string {
	_, isOperator := operator.Binary[name]
	i := slices.IndexFunc(habits, func(h habit) bool {
		return h.place == inCall && slices.Contains(strings.Fields(h.written), name)
	})
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = textOf(arg)
		if _, binary := arg.(*ast.BinaryNode); binary {
			texts[i] = "(" + texts[i] + ")"
		}
	}
	field, isGetter := getter(name)
	switch similar := failpolicy.Nearest(name, slices.Sorted(maps.Keys(functions))); {
	case i < 0 && isGetter && len(texts) == 1:
		path := texts[0] + "." + field
		found, _ := c.schema.find(path)
		return cmp.Or(found, path)
	case i < 0 && similar != "" && !isOperator && identifier.MatchString(name):
		if len(texts) != functions[similar].arguments() {
			return ""
		}
		return similar + "(" + strings.Join(texts, ", ") + ")"
	case i < 0 || len(texts) == 0:
		return ""
	}
	written := habits[i].instead
	for j := range 3 {
		text := ""
		if j < len(texts) {
			text = texts[j]
		}
		written = strings.ReplaceAll(written, "{"+strconv.Itoa(j+1)+"}", text)
	}
	text, isText := args[len(args)-1].(*ast.StringNode)
	_, isInteger := integerOf(args[len(args)-1])
	switch {
	case !isText && strings.Contains(written, "{n}"), name == "get" && !isText && !isInteger:
		return "" // bounds and names are literals
	case isText:
		written = strings.ReplaceAll(written, "{n}", strconv.Itoa(len(text.Value)))
	}
	if strings.Contains(habits[i].instead, "in {1}[:]") && !c.accepts(written) {
		return "" // it asks for a part of a text
	}
	return written
}

// accepts reports whether the language has an expression.
func (c *checker) accepts(text string) bool {
	tree, err := c.parse(text)
	if err != nil {
		return false
	}
	silent := &checker{schema: c.schema, source: c.source, used: map[string]bool{}}
	silent.node(tree.Node, modeValue)
	return len(silent.problems) == 0
}

// notHere reports a function or operator that the language does not have.
func (c *checker) notHere(x ast.Node, name string) node {
	if name == "now" {
		return c.report(x, "", "now is not known here: one request must always have the same key")
	}
	return c.report(x, "", "%s is not known here: register a variable for the value", name)
}

// correction is what a name of another language is called here.
func (s *Schema) correction(name string) string {
	name = strings.Trim(property(strings.TrimSpace(name)), ". #")
	if found, ok := s.find(name); ok {
		return found
	}
	return cmp.Or(failpolicy.Nearest(name, s.candidates()), s.guess(name))
}

// candidates are all references of one or two names.
func (s *Schema) candidates() []string {
	var all []string
	for _, v := range s.variables {
		all = append(all, v.Name)
		for _, name := range v.Type.names() {
			all = append(all, v.Name+"."+name)
		}
	}
	return all
}

// find translates a name of another template language to one of the schema:
// orderId becomes path.orderId, order.id becomes in.Order.ID.
func (s *Schema) find(path string) (string, bool) {
	names := strings.Split(strings.Trim(path, ". "), ".")
	if slot, ok := s.slots[names[0]]; ok {
		if found, ok := s.variables[slot].Type.find(names[1:]); ok {
			return names[0] + "." + found, true
		}
		return strings.Join(names, "."), true
	}
	for _, v := range s.variables {
		if found, ok := v.Type.find(names); ok {
			return v.Name + "." + found, true
		}
	}
	return "", false
}

// guess places an unknown name into the variable that may hold anything, or else into one
// that has a field of all its names, or of all but the first, a parameter in Java.
func (s *Schema) guess(path string) string {
	if i := slices.IndexFunc(s.variables, func(v Variable) bool { return v.Type.kind == kindAny }); i >= 0 {
		return s.variables[i].Name + "." + path
	}
	_, field, _ := strings.Cut(path, ".")
	joined, _ := s.find(strings.ReplaceAll(path, ".", "_"))
	found, _ := s.find(field)
	return cmp.Or(joined, found, path)
}

func (t Type) find(names []string) (string, bool) {
	known := t.names()
	i := slices.IndexFunc(known, func(name string) bool {
		return len(names) > 0 && names[0] != "" && failpolicy.SameName(name, names[0])
	})
	if i < 0 {
		return "", false
	}
	if len(names) == 1 || t.kind == kindKeyed {
		return known[i], true
	}
	field, _ := t.object.Field(known[i])
	rest, ok := field.Type.find(names[1:])
	return known[i] + "." + rest, ok
}

// property is what a path of names that ends with a call of a getter, or of toString, is called here.
func property(path string) string {
	path, isCall := strings.CutSuffix(path, "()")
	last := strings.LastIndexByte(path, '.') + 1
	if field, ok := getter(path[last:]); ok && isCall {
		return path[:last] + field
	}
	return strings.TrimSuffix(path, ".toString") // what a part does by itself
}

// getter is the field that a getter of Java reads.
func getter(name string) (field string, ok bool) {
	name, ok = strings.CutPrefix(name, "get")
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(first)) + name[size:], ok && unicode.IsUpper(first)
}

// example is some variable reference that the schema admits.
func (s *Schema) example() string {
	for _, v := range s.variables {
		if names := v.Type.names(); len(names) > 0 {
			return v.Name + "." + names[0]
		}
		if v.Type.kind == kindString {
			return v.Name
		}
	}
	return "…"
}

// listing names candidates in a message, the first few of them.
func listing(names []string) string {
	const most = 12
	names = slices.Sorted(slices.Values(names))
	switch {
	case len(names) == 0:
		return "there are none"
	case len(names) == 1:
		return "there is " + names[0]
	case len(names) > most:
		names = append(names[:most], "…")
	}
	return "there are " + strings.Join(names, ", ")
}

var (
	sumText = regexp.MustCompile(`^\s*(?:\+\s*(?:'[^']*'|"[^"]*")\s*)*\+\s*$`)
	sumSign = regexp.MustCompile(`\s*\+\s*(?:'([^']*)'|"([^"]*)")?`)
	sumName = regexp.MustCompile(`\s\+\s*#[\pL_]|^\s*#[\pL_][\pL\pN_.]*(?:\(\))?\s+\+`)
)

// unsummed returns what is meant by a sum outside of parts, such as 'a:' + #{path.id}, and
// the problem of its first sign. Without quotes or spaces a plus is literal text.
func unsummed(template string) (meant string, sign *Error) {
	segments, _ := split(template) //nolint:errcheck // what cannot be split has no sum
	meant = template
	for i, s := range slices.Backward(segments) { // offsets before a change stay right
		sum := s.text
		if i == 0 {
			sum = "+" + sum
		}
		if i == len(segments)-1 {
			sum += "+"
		}
		if len(segments) > 1 && !s.isExpr && s.text != "+" && strings.Contains(s.text, "+") && sumText.MatchString(sum) {
			meant = meant[:s.offset] + cmp.Or(sumSign.ReplaceAllString(sum, "$1$2"), ":") + meant[s.offset+len(s.text):]
			sign = s.at(strings.IndexAny(s.text, `'"+`), `"+" joins nothing here: it and quotes outside of #{} would be literal text`, "")
		}
	}
	return meant, sign
}
