package keyexpr

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser/operator"

	"github.com/interlock-go/interlock/failpolicy"
)

// This file recognizes notations from other template and expression languages and translates them
// into this one.

// place is a kind of text in which a habit can occur.
type place uint8

const (
	inConstant place = iota // the text of a template without parts
	inText                  // any text outside of parts
	inPart                  // an expression that does not compile
	inCall                  // a call or operator in an expression that does not compile
)

// habit is a notation of another language with its translation.
type habit struct {
	place   place
	written string // a regular expression; for inCall, the names of functions, methods and operators
	message string
	// instead is the translation. @1 stands for the translation of the name in the first group, and
	// @ for an example of a variable. For inCall, {1} stands for the first operand or argument, and
	// {n} for the length of the last one. instead is empty if no expression can compute the value.
	// In message, @advice stands for the advice of adviseProgram.
	instead string
}

var habits = []habit{ //nolint:gochecknoglobals // a table that is only read
	{inText, `\$\{([^{}]*)\}?`, `"${" does not begin a part here`, "#{@1}"},
	{inText, `\{\{([^{}]*)\}\}`, `"{{" does not begin a part here`, "#{@1}"},
	{inConstant, spelName, `"#name" does not begin a part here`, "#{@1}"},
	{inConstant, `%[sdvq]`, `"%s" does not begin a part here`, "#{@}"},
	{inConstant, `\{([\pL_][\pL\pN_.]*)\}`, `"{name}" does not begin a part here`, "#{@1}"},
	{inConstant, `:([\pL_][\pL\pN_]*)`, `":name" does not begin a part here`, ":#{@1}"},
	{inConstant, bareReference, "the name is not inside of #{}", "#{@1}"},

	{inPart, spelName, "#${1} is not known here: names stand without #", "@1"},
	{inPart, operand + `\.!\[([^\[\]]*)\]`, ".![…] is not known here: a projection is map(…)", "map($1, .$2)"},
	{inPart, operand + `\.[?^$]\[([^\[\]]*)\]`, ".?[…] is not known here: a selection is filter(…)", "filter($1, .$2)"},
	{inPart, operand + `\[\*\]\.([\pL\pN_.]+)`, "[*] is not known here: a field of each element is map(…)", "map($1, .$2)"},
	{inPart, operand + `\[\*\]($|[^.])`, "[*] is not known here: all elements are [:]", "$1[:]$2"},
	{inPart, `\bT\([^()]*\)(?:\.[\pL\pN_]+(?:\([^()]*\))?)*`, "types and their static methods cannot be used: @advice", ""},
	{inPart, `\?:`, "?: is not known here", "??"},
	{inPart, `(^|[^.\pL\pN_])null\b`, "null is not known here", "${1}nil"},
	{inPart, `\blet\b`, "let is not known here: write the value where it is used, or @advice", ""},
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
	// spelName matches a path of names that may end with the call of a getter.
	spelName = `#([\pL_][\pL\pN_]*(?:\.[\pL_][\pL\pN_]*)*(?:\(\))?)`
	// bareReference matches a variable with a field.
	bareReference = `([\pL_][\pL\pN_]*\.[\pL_][\pL\pN_.-]*)`
	// argument matches a field of a function's argument.
	argument = `(?:^|[^.\pL\pN_])in\.[\pL_]`
	// operand matches an expression that a selector may follow.
	operand = `([\pL_][\pL\pN_.]*(?:\[[^\[\]*]*\][\pL\pN_.]*)*)`
)

// patterns holds the compiled regular expressions of the table.
var patterns = compilePatterns() //nolint:gochecknoglobals // a table that is only read

func compilePatterns() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for _, h := range habits {
		if h.place != inCall {
			all[h.written] = regexp.MustCompile(h.written)
		}
	}
	return all
}

// replace translates a segment. It also returns a problem for each occurrence of the habit.
func (h *habit) replace(s segment, schema *Schema) (translated string, problems []*Error) {
	var b strings.Builder
	done, pattern := 0, patterns[h.written]
	for _, m := range pattern.FindAllStringSubmatchIndex(maskTexts(s), -1) {
		name, start := "", m[0]
		if len(m) > 2 {
			name = s.text[m[2]:m[3]]
		}
		if !h.isMeant(schema, name) {
			continue
		}
		if strings.Contains(h.instead, "$1") || strings.Contains(h.instead, "${1}") { // the habit starts after the first group
			start = m[3]
		}
		message := strings.Replace(string(pattern.ExpandString(nil, h.message, s.text, m)), "@advice", adviseProgram(schema, "the value"), 1)
		if !s.isExpr {
			message = fmt.Sprintf("%s: %q would be literal text", h.message, s.text[m[0]:m[1]])
		}
		problems = append(problems, s.problem(start, message, ""))
		instead := strings.NewReplacer("@1", translateName(schema, name), "@", exampleReference(schema)).Replace(h.instead)
		b.WriteString(s.text[done:m[0]] + string(pattern.ExpandString(nil, instead, s.text, m)))
		done = m[1]
	}
	return b.String() + s.text[done:], problems
}

// isMeant reports whether a match of the pattern is really the habit. name is the text of the first
// group.
func (h *habit) isMeant(schema *Schema, name string) bool {
	switch {
	case strings.HasPrefix(h.message, `"{name}"`):
		_, known := findReference(schema, name)
		return known
	case strings.HasPrefix(h.message, `":name"`):
		return slices.ContainsFunc(schema.variables, func(v Variable) bool {
			return v.Type.kind == kindKeyed && slices.Contains(v.Type.keyed.Known, name)
		})
	case h.written == bareReference:
		variable, _, _ := strings.Cut(name, ".")
		slot, declared := schema.slots[variable]
		return declared && schema.variables[slot].Type.kind != kindString // a text has no fields
	case h.written == argument:
		return !slices.Contains(schema.Variables(), argumentName)
	case h.place == inPart && h.written == spelName: // #index and #acc are pointers of expr
		return name != "index" && name != "acc"
	}
	return true
}

var quotedText = regexp.MustCompile("'(?:[^'\\\\]|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")

// maskTexts replaces the contents of the string literals in an expression by placeholders of the
// same length.
func maskTexts(s segment) string {
	if !s.isExpr {
		return s.text
	}
	return quotedText.ReplaceAllStringFunc(s.text, func(text string) string {
		return text[:1] + strings.Repeat("~", len(text)-2) + text[:1]
	})
}

// fix is a segment of a template together with its translation.
type fix struct {
	segment

	translated string
}

// applyFixes writes the translations into a template.
func applyFixes(fixes []fix, template string) string {
	for _, f := range slices.Backward(fixes) {
		template = template[:f.offset] + f.translated + template[f.offset+len(f.text):]
	}
	return template
}

// translateText translates the habits in a text outside of parts. constant reports that the
// template has no parts.
func translateText(s segment, constant bool, schema *Schema) (translated string, problems []*Error) {
	for i := range habits {
		h := &habits[i]
		isName := h.written == spelName && sumName.MatchString(s.text)
		if h.place > inText || h.place == inConstant && !constant && !isName {
			continue
		}
		if translated, problems = h.replace(s, schema); len(problems) > 0 {
			return translated, problems
		}
	}
	return s.text, nil
}

// translateExpression translates the habits in an expression that has the given problems. If the
// expression has no habits, it returns these problems and no translation. If no expression can
// compute the value, or the translation does not compile, it returns the problems of the habits and
// no translation.
func translateExpression(s segment, schema *Schema, condition bool, found []*Error) (translated string, problems []*Error) {
	text := s
	for i := range habits {
		h := &habits[i]
		if h.place != inPart {
			continue
		}
		_, here := h.replace(s, schema) // the problems have positions in the source
		problems = append(problems, here...)
		if len(here) > 0 && h.instead == "" {
			return "", problems
		}
		text.text, _ = h.replace(text, schema)
	}
	t := &callTranslator{source: s, schema: schema}
	if tree, err := parse(text.text, schema); err == nil && !isLarge(&tree.Node) {
		ast.Walk(&tree.Node, t)
		if len(t.problems) > 0 {
			text.text = sourceOf(tree.Node)
		}
	}
	if len(problems) == 0 {
		problems = t.problems
	}
	switch {
	case len(problems) == 0:
		return "", found
	case untranslatedCall.MatchString(text.text):
		for _, p := range problems {
			p.Message += ": " + adviseProgram(schema, "the value")
		}
		return "", problems
	}
	translated, v := acceptedExpression(text.text, s, schema, condition)
	if v.isBool {
		for _, p := range problems {
			p.Message += boolPart
		}
	}
	return translated, problems
}

// untranslatedCall matches a call that has the name of an operator of expr and was not translated.
var untranslatedCall = regexp.MustCompile(`\b(contains|startsWith|endsWith)_\(`)

// callTranslator replaces calls and operators that this language does not have by their translation.
type callTranslator struct {
	source   segment
	schema   *Schema
	problems []*Error
}

// Visit implements [ast.Visitor].
func (t *callTranslator) Visit(n *ast.Node) {
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
			name, message, args = methodOf(callee), "methods cannot be called: .%s()", append([]ast.Node{callee.Node}, args...)
		}
	}
	if _, known := functions[name]; name == "" || known && !strings.HasPrefix(message, "methods") {
		return
	}
	translated := t.translate(name, args)
	if translated == "" {
		return
	}
	tree, err := parse("map([], "+translated+")", t.schema) // the call may be in a predicate
	if err != nil {
		return
	}
	made, _ := tree.Node.(*ast.BuiltinNode)                //nolint:errcheck // the text above is a call of map
	predicate, _ := made.Arguments[1].(*ast.PredicateNode) //nolint:errcheck // the text above is a call of map
	name = strings.TrimSuffix(name, "_")
	if strings.HasPrefix(message, "methods") {
		name = quoteName(name)
	}
	offset := byteOffset(t.source.text, (*n).Location().From)
	t.problems = append(t.problems, t.source.problem(offset, fmt.Sprintf(message, name), ""))
	*n = predicate.Node
}

// translate returns the translation of a call or operator, or "" if it has none.
func (t *callTranslator) translate(name string, args []ast.Node) string {
	_, isOperator := operator.Binary[name]
	i := slices.IndexFunc(habits, func(h habit) bool {
		return h.place == inCall && slices.Contains(strings.Fields(h.written), name)
	})
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = sourceOf(arg)
		if _, binary := arg.(*ast.BinaryNode); binary {
			texts[i] = "(" + texts[i] + ")"
		}
	}
	field, isGetter := getterField(name)
	switch similar := failpolicy.Nearest(name, slices.Sorted(maps.Keys(functions))); {
	case i < 0 && isGetter && len(texts) == 1:
		path := texts[0] + "." + field
		found, _ := findReference(t.schema, path)
		return cmp.Or(found, path)
	case i < 0 && similar != "" && !isOperator && identifier.MatchString(name):
		if len(texts) != functions[similar].arguments() {
			return ""
		}
		return similar + "(" + strings.Join(texts, ", ") + ")"
	case i < 0 || len(texts) == 0:
		return ""
	}
	translated := habits[i].instead
	for j := range 3 {
		text := ""
		if j < len(texts) {
			text = texts[j]
		}
		translated = strings.ReplaceAll(translated, "{"+strconv.Itoa(j+1)+"}", text)
	}
	text, isText := args[len(args)-1].(*ast.StringNode)
	_, isInteger := integerOf(args[len(args)-1])
	switch {
	case !isText && strings.Contains(translated, "{n}"), name == "get" && !isText && !isInteger:
		return "" // bounds and names must be literals
	case isText:
		translated = strings.ReplaceAll(translated, "{n}", strconv.Itoa(len(text.Value)))
	}
	if strings.Contains(habits[i].instead, "in {1}[:]") && !t.accepts(translated) {
		return "" // the call searches for a substring
	}
	return translated
}

// accepts reports whether an expression compiles.
func (t *callTranslator) accepts(text string) bool {
	tree, err := parse(text, t.schema)
	if err != nil {
		return false
	}
	return len(examine(tree.Node, t.source, t.schema, true).messages) == 0
}

var (
	sumText = regexp.MustCompile(`^\s*(?:\+\s*(?:'[^']*'|"[^"]*")\s*)*\+\s*$`)
	sumSign = regexp.MustCompile(`\s*\+\s*(?:'([^']*)'|"([^"]*)")?`)
	sumName = regexp.MustCompile(`\s\+\s*#[\pL_]|^\s*#[\pL_][\pL\pN_.]*(?:\(\))?\s+\+`)
)

// translateSum translates a sum outside of parts, for example 'a:' + #{path.id}. It returns the
// problem of the first sign, or nil if the text has no sum. A plus without quotes or spaces is
// literal text.
func translateSum(template string) (translated string, sign *Error) {
	segments, _ := split(template) //nolint:errcheck // a template that cannot be split has no sum
	translated = template
	for i, s := range slices.Backward(segments) { // from the end, so that a change keeps the offsets of earlier segments
		sum := s.text
		if i == 0 {
			sum = "+" + sum
		}
		if i == len(segments)-1 {
			sum += "+"
		}
		if len(segments) > 1 && !s.isExpr && s.text != "+" && strings.Contains(s.text, "+") && sumText.MatchString(sum) {
			translated = translated[:s.offset] + cmp.Or(sumSign.ReplaceAllString(sum, "$1$2"), ":") + translated[s.offset+len(s.text):]
			sign = s.problem(strings.IndexAny(s.text, `'"+`), `"+" does not join texts here: outside of #{}, it and quotes would be literal text`, "")
		}
	}
	if sign != nil {
		translated = strings.TrimSpace(translated) // the blanks around a sum are not text
	}
	return translated, sign
}
