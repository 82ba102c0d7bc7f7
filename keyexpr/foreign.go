package keyexpr

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// foreignSyntax is a way to write variables in some other template language.
type foreignSyntax struct {
	pattern *regexp.Regexp // group 1 is the name
	message string
	// anywhere also refuses it beside real parts, where it cannot be meant.
	anywhere bool
	// known asks for a name that the schema has.
	known func(s *Schema, name string) bool
}

var foreignSyntaxes = []foreignSyntax{ //nolint:gochecknoglobals // a table that is only read
	{regexp.MustCompile(`\$\{([^{}]*)\}?`), `"${" begins no part here`, true, nil},
	{regexp.MustCompile(`\{\{([^{}]*)\}\}`), `"{{" begins no part here`, true, nil},
	{spelVariable, `"#name" begins no part here`, false, nil},
	{regexp.MustCompile(`%([sdvq])`), `"%s" begins no part here`, false, nil},
	{regexp.MustCompile(`\{([\pL_][\pL\pN_.]*)\}`), `"{name}" begins no part here`, false, knownName},
	{regexp.MustCompile(`:([\pL_][\pL\pN_]*)`), `":name" begins no part here`, false, knownParameter},
}

func knownName(s *Schema, name string) bool {
	_, ok := s.find(name)
	return ok
}

func knownParameter(s *Schema, name string) bool {
	return slices.ContainsFunc(s.variables, func(v Variable) bool {
		return v.Type.kind == kindKeyed && slices.Contains(v.Type.keyed.Known, name)
	})
}

// checkForeign reports literal text that looks like the syntax of another
// language, with the corrected template.
func checkForeign(segments []segment, schema *Schema) []*Error {
	constant := !slices.ContainsFunc(segments, func(s segment) bool { return s.isExpr })
	var problems []*Error
	var corrected strings.Builder
	for _, s := range segments {
		if s.isExpr {
			corrected.WriteString(opening + s.text + "}")
			continue
		}
		fixed, found := correct(s, schema, constant)
		problems = append(problems, found...)
		corrected.WriteString(fixed)
	}
	meant, sign := unsummed(corrected.String())
	if sign != nil && len(problems) == 0 {
		problems = append(problems, sign)
	}
	for _, p := range problems {
		p.Suggestion = meant
	}
	return problems
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

func correct(s segment, schema *Schema, constant bool) (string, []*Error) {
	for _, f := range foreignSyntaxes {
		if !constant && !f.anywhere && (f.pattern != spelVariable || !sumName.MatchString(s.text)) {
			continue
		}
		var problems []*Error
		var fixed strings.Builder
		done := 0
		for _, m := range f.pattern.FindAllStringSubmatchIndex(s.text, -1) {
			name := s.text[m[2]:m[3]]
			if f.known != nil && !f.known(schema, name) {
				continue
			}
			message := fmt.Sprintf("%s: %q would be literal text", f.message, s.text[m[0]:m[1]])
			problems = append(problems, s.at(m[0], message, ""))
			fixed.WriteString(s.text[done:m[0]] + schema.part(name, f.message))
			done = m[1]
		}
		if len(problems) > 0 {
			return fixed.String() + s.text[done:], problems
		}
	}
	return s.text, nil
}

// part returns a part for a name of another language. A colon before a
// parameter is kept, because it is the separator of most keys.
func (s *Schema) part(name, message string) string {
	separator := ""
	if strings.HasPrefix(message, `":`) {
		separator = ":"
	}
	name = property(strings.TrimSpace(name))
	if found, ok := s.find(strings.TrimPrefix(name, "#")); ok {
		return separator + opening + found + "}"
	}
	if len(name) == 1 { // a verb of fmt
		return separator + opening + s.example() + "}"
	}
	return separator + opening + s.guess(strings.Trim(name, ". #")) + "}"
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
