package ruleset

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

// field is a row of the table of the fields of S, which is [Rule] or [Settings]: all that
// Go, files, .proto files, dumps and checks know of one field.
type field[S any] struct {
	name    string // outside Go; the name in Go follows from it
	single  bool   // no profile and no default has it
	instead string // the field that goes when this one is set, and the other way round
	typ     any    // a typ of its values

	isZero func(s *S) bool
	lay    func(to, from *S)
	show   func(s *S) any // as a file says it: a string, word, bool, int, list of strings or object
	read   func(f *fileReader, v value, to *S) bool
	set    func(to *S, part string, layer Layer, value any) error
	check  func(c *checker, s *S)
}

// typ is how the values of a field are written and judged, in all places that have rules.
type typ[V any] interface {
	// read reads a value of a file. It reports a value that it cannot read.
	read(f *fileReader, v value) (V, bool)
	// set takes a value of a .proto, or a part of one. The error says what to write instead.
	set(to *V, part string, layer Layer, value any) error
	// show is the value as a file has it.
	show(v V) any
	// check reports a value that no rule can have.
	check(c *checker, field string, v V)
}

// column makes the row of a field of S.
func column[S, V any, T typ[V]](name string, t T, at func(*S) *V) *field[S] {
	return &field[S]{
		name: name, typ: t,
		isZero: func(s *S) bool { return reflect.ValueOf(at(s)).Elem().IsZero() },
		lay:    func(to, from *S) { *at(to) = *at(from) },
		show:   func(s *S) any { return t.show(*at(s)) },
		read: func(f *fileReader, v value, to *S) bool {
			x, ok := t.read(f, v)
			if ok {
				*at(to) = x
			}
			return ok
		},
		set:   func(to *S, part string, layer Layer, value any) error { return t.set(at(to), part, layer, value) },
		check: func(c *checker, s *S) { t.check(c, name, *at(s)) },
	}
}

// forOneRule says that the field belongs to a single rule.
func (f *field[S]) forOneRule() *field[S] {
	f.single = true
	return f
}

// insteadOf names the other form of the field.
func (f *field[S]) insteadOf(other string) *field[S] {
	f.instead = other
	return f
}

// fieldNamed finds a field of a rule by its name outside Go, nil if there is none.
func fieldNamed(name string) *field[Rule] {
	if i := slices.IndexFunc(ruleFields, func(f *field[Rule]) bool { return f.name == name }); i >= 0 {
		return ruleFields[i]
	}
	return nil
}

// Fields lists the names of the fields of a [Rule] as they are written outside
// Go, in their order.
func Fields() []string { return namesOf(ruleFields) }

func namesOf[S any](fields []*field[S]) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// goName is the Go name of a field, for the parts of a field ("keys[2]") too.
func goName(field string) string {
	base, rest := cutField(field)
	if fieldNamed(base) == nil {
		return field
	}
	return camel(base) + rest
}

// camel is the name in Go of what is wait_time outside.
func camel(name string) string {
	var text strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		text.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return text.String()
}

// cutField splits "keys[2]" into the field and the part of it.
func cutField(field string) (base, part string) {
	if cut := strings.IndexAny(field, "[."); cut >= 0 {
		return field[:cut], field[cut:]
	}
	return field, ""
}

// fieldList is a set of names of fields.
type fieldList []string

// hasAny reports whether one of the named fields is in the set.
func (l fieldList) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(l, name) })
}

// assign stores a value that a .proto has.
func assign[V any](to *V, value any) error {
	v, ok := value.(V)
	if !ok {
		return fmt.Errorf("%v cannot stand here: the option is not of this version of lock.proto", value)
	}
	*to = v
	return nil
}

// textType is a text.
type textType struct{ form strictyaml.Form }

func (t textType) read(f *fileReader, v value) (string, bool)   { return f.Text(v, t.form) }
func (textType) set(to *string, _ string, _ Layer, v any) error { return assign(to, v) }
func (textType) show(v string) any                              { return v }
func (textType) check(*checker, string, string)                 {}

// labelType is the static name of a rule.
type labelType struct{ textType }

func (labelType) check(c *checker, field, name string) {
	switch {
	case isBlank(name):
		c.reportf(field, "blank: write a word such as \"pay-order\", or leave it out")
	case len(name) > maxNameLength:
		c.reportf(field, "%d bytes long: a label has at most %d", len(name), maxNameLength)
	case strings.ContainsFunc(name, unicode.IsControl), !utf8.ValidString(name):
		c.reportf(field, "%q contains control characters or is not UTF-8: write a word such as \"pay-order\"", name)
	case hasPlaceholder(name):
		c.reportf(field, "%q is a metric label and must not contain request data: put #{…} into the key", name)
	}
}

// sentenceType is a text that a client sees.
type sentenceType struct{ textType }

func (sentenceType) check(c *checker, field, text string) {
	if !utf8.ValidString(text) {
		c.reportf(field, "%q is not UTF-8, and no answer can carry it: write a sentence", text)
	}
}

// documentType is a JSON document.
type documentType struct{ textType }

func (documentType) check(c *checker, field, text string) {
	if at := c.rule.placeOf(field); !json.Valid([]byte(text)) {
		c.reportf(field, "%s is not JSON: write a document such as %s", at.quote(text), at.quote(`{"status":"pending"}`))
	}
}

// prefixType is a text in front of keys.
type prefixType struct{ textType }

func (prefixType) check(c *checker, field, prefix string) {
	switch {
	case hasPlaceholder(prefix):
		c.reportf(field, "%q is the same for every request: put #{…} into the key", prefix)
	case strings.ContainsFunc(prefix, unicode.IsControl):
		c.reportf(field, "%q contains control characters: write a word such as \"shop:\"", prefix)
	}
}

func hasPlaceholder(s string) bool {
	return strings.Contains(s, "#{") || strings.Contains(s, "${") || strings.Contains(s, "{{")
}

// conditionType is a bare expression.
type conditionType struct{ textType }

func (conditionType) check(c *checker, field, when string) {
	at, bare := c.rule.placeOf(field), strings.TrimSpace(when)
	switch {
	case bare == "":
		c.reportf(field, "blank: write a condition such as %s, or leave it out", at.quote(`query.mode == "async"`))
	case strings.ContainsFunc(when, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }):
		c.reportf(field, "%q contains control characters: remove them", when)
	case strings.HasPrefix(bare, "#{"):
		bare = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(bare, "#{"), "}"))
		c.reportf(field, "a condition is a bare expression: write %s without #{…}", at.quote(bare))
	}
}

// listType is a list of texts.
type listType struct{ form strictyaml.Form }

func (t listType) read(f *fileReader, v value) ([]string, bool) {
	return f.texts(v, t.form, maxTemplates, templateCount)
}
func (listType) set(to *[]string, _ string, _ Layer, v any) error { return assign(to, v) }
func (listType) show(v []string) any                              { return v }
func (listType) check(*checker, string, []string)                 {}

// boolType is true or false.
type boolType struct{}

func (boolType) read(f *fileReader, v value) (bool, bool)     { return f.Bool(v) }
func (boolType) set(to *bool, _ string, _ Layer, v any) error { return assign(to, v) }
func (boolType) show(v bool) any                              { return v }
func (boolType) check(*checker, string, bool)                 {}

// numberType is a whole number from least to most; advice is what to write.
type numberType struct {
	least, most int
	advice      string
}

func (numberType) read(f *fileReader, v value) (int, bool)     { return f.Int(v, "10") }
func (numberType) set(to *int, _ string, _ Layer, v any) error { return assign(to, v) }
func (numberType) show(v int) any                              { return v }

func (t numberType) check(c *checker, field string, n int) {
	if n < t.least || n > t.most {
		c.reportf(field, "%d is out of range: write %s", n, t.advice)
	}
}

// timeType is a time from 1ms to maxDuration, or one of the words for what is none.
type timeType struct {
	example time.Duration
	words   []time.Duration   // NoWait and so on
	meant   map[string]string // what the numbers of other libraries stand for
}

func (t timeType) read(f *fileReader, v value) (time.Duration, bool) { return f.duration(v, t) }
func (timeType) show(v time.Duration) any                            { return word(durationWord(v)) }

func (t timeType) set(to *time.Duration, _ string, layer Layer, v any) (err error) {
	var text string
	if err = assign(&text, v); err == nil {
		*to, err = t.parse(layer, text)
	}
	return err
}

func (t timeType) check(c *checker, field string, d time.Duration) {
	at := c.rule.placeOf(field)
	other, isWord := sentinels[d]
	example, spelled := at.duration(t.example), make([]string, len(t.words))
	for i, w := range t.words {
		spelled[i] = at.duration(w)
	}
	words := strings.Join(spelled, " or ")
	switch {
	case slices.Contains(t.words, d), d >= time.Millisecond && d <= maxDuration, d == 0 && len(t.words) == 0:
	case isWord:
		c.reportf(field, "%s belongs to %s: write a time such as %s", at.duration(d), at.spell(other.field), listed(example, words))
	case words == "":
		c.reportf(field, "%s is out of range: write 1ms to %s, such as %s%s", shortTime(d), shortTime(maxDuration), example, at.unitHint(d))
	default:
		c.reportf(field, "%s is out of range: write 1ms to %s%s", shortTime(d), listed(shortTime(maxDuration), words), at.unitHint(d))
	}
}

// listed is an example, and the words that may stand in its place.
func listed(example, words string) string {
	switch {
	case words == "":
		return example
	case strings.Contains(words, " or "):
		return example + ", " + words
	default:
		return example + ", or " + words
	}
}

// wordType is one of a few words.
type wordType[T ~string] struct{ wordList }

// read takes what YAML takes for something else, such as NULL, for the word that was meant.
func (t wordType[T]) read(f *fileReader, v value) (T, bool) {
	n := v.Node
	isNull := n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value != ""
	if !isNull && !f.Is(v, yaml.ScalarNode, "one of "+strings.Join(t.known, ", ")) {
		return "", false
	}
	if err := t.wordList.check(strictyaml.Clip(n.Value)); err != nil {
		f.Reportf(n, v.Field, "%s", err)
		return "", false
	}
	return T(n.Value), true
}

func (wordType[T]) set(to *T, _ string, _ Layer, v any) error {
	var text string
	err := assign(&text, v)
	*to = T(text)
	return err
}

func (wordType[T]) show(v T) any { return string(v) }

func (t wordType[T]) check(c *checker, field string, v T) {
	if v != "" {
		c.reportWord(field, t.wordList.check(string(v)))
	}
}

// endpointType is where a rule applies. A file says it by transport, a .proto by the method.
type endpointType struct{}

func (endpointType) read(*fileReader, value) (Endpoint, bool)         { return Endpoint{}, false }
func (endpointType) set(to *Endpoint, _ string, _ Layer, v any) error { return assign(to, v) }
func (endpointType) show(v Endpoint) any                              { return v.String() }
func (endpointType) check(*checker, string, Endpoint)                 {}

// statusesType is the statuses of the causes: {busy: {http: 423, grpc: ABORTED}}.
type statusesType struct{}

func (statusesType) check(c *checker, field string, s failpolicy.Statuses) {
	c.reportErr(field, s.Validate())
}

func (statusesType) show(s failpolicy.Statuses) any {
	causes := object{}
	for _, cause := range failpolicy.Causes() {
		status := s.Of(cause)
		if status == nil || *status == (failpolicy.Status{}) {
			continue
		}
		halves := object{}
		if status.HTTP != 0 {
			halves = append(halves, member{"http", status.HTTP})
		}
		if status.GRPC != 0 {
			halves = append(halves, member{"grpc", word(status.GRPC.String())})
		}
		causes = append(causes, member{string(cause), halves})
	}
	return causes
}

// set sets a half of a status, such as ".busy.http".
func (statusesType) set(to *failpolicy.Statuses, part string, _ Layer, v any) error {
	cause, half, _ := strings.Cut(strings.TrimPrefix(part, "."), ".")
	status := to.Of(failpolicy.Cause(cause))
	switch {
	case status == nil:
		return fmt.Errorf("a refused client sees no status of %s", cause)
	case half == "http" && v == 0:
		return fmt.Errorf("0 is no status: write one of 400 to 599, such as %d", failpolicy.Cause(cause).Status().HTTP)
	case half == "http":
		return assign(&status.HTTP, v)
	}
	var name string
	err := assign(&name, v)
	if err == nil {
		status.GRPC, err = failpolicy.ParseCode(name)
	}
	return err
}
