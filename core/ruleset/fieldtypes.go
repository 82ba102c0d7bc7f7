package ruleset

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

// typ is the type of the values of a field. It defines how each place that declares rules writes the
// values, and which values are wrong.
type typ[V any] interface {
	// read reads a value of a file. It reports a value that it cannot read.
	read(d *strictyaml.Doc, v strictyaml.Value) (V, bool)
	// set stores a value from a .proto, or a part of a value. The error advises what to write
	// instead.
	set(to *V, part string, layer Layer, value any) error
	// show returns the value in the notation of a file: see object.
	show(v V) any
	// check returns a message for each thing that is wrong with a value, spelled for the place at.
	check(at Source, v V) []string
}

// assign stores a value from a .proto.
func assign[V any](to *V, value any) error {
	v, ok := value.(V)
	if !ok {
		return fmt.Errorf("%v cannot stand here: the option is not of this version of lock.proto", value)
	}
	*to = v
	return nil
}

func wrong(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }

// wrongLines returns a message for each line of an error.
func wrongLines(err error) []string {
	if err == nil {
		return nil
	}
	var messages []string
	for line := range strings.Lines(err.Error()) {
		messages = append(messages, strings.TrimSpace(line))
	}
	return messages
}

// textType is a text.
type textType struct{ form strictyaml.Form }

func (t textType) read(d *strictyaml.Doc, v strictyaml.Value) (string, bool) {
	return d.Text(v, t.form)
}

func (textType) set(to *string, _ string, _ Layer, v any) error { return assign(to, v) }
func (textType) show(v string) any                              { return v }
func (textType) check(Source, string) []string                  { return nil }

// labelType is the static name of a rule.
type labelType struct{ textType }

func (labelType) check(_ Source, name string) []string {
	switch {
	case isBlank(name):
		return wrong("blank: write a word such as \"pay-order\", or leave it out")
	case len(name) > maxNameLength:
		return wrong("%d bytes long: a label has at most %d", len(name), maxNameLength)
	case strings.ContainsFunc(name, unicode.IsControl), !utf8.ValidString(name):
		return wrong("%q contains control characters or is not UTF-8: write a word such as \"pay-order\"", name)
	case hasPlaceholder(name):
		return wrong("%q is a metric label and must not contain request data: put #{…} into the key", name)
	}
	return nil
}

// sentenceType is a text that a client sees.
type sentenceType struct{ textType }

func (sentenceType) check(_ Source, text string) []string {
	if !utf8.ValidString(text) {
		return wrong("%q is not UTF-8, and an answer cannot carry it: write a sentence", text)
	}
	return nil
}

// documentType is a JSON document.
type documentType struct{ textType }

func (documentType) check(at Source, text string) []string {
	if !json.Valid([]byte(text)) {
		return wrong("%s is not JSON: write a document such as %s", at.quote(text), at.quote(`{"status":"pending"}`))
	}
	return nil
}

// prefixType is a text before keys.
type prefixType struct{ textType }

func (prefixType) check(_ Source, prefix string) []string {
	switch {
	case hasPlaceholder(prefix):
		return wrong("%q is the same for every request: put #{…} into the key", prefix)
	case strings.ContainsFunc(prefix, unicode.IsControl):
		return wrong("%q contains control characters: write a word such as \"shop:\"", prefix)
	}
	return nil
}

// parts finds the parts of a template that contain no braces.
var parts = regexp.MustCompile(`#\{([^{}]*)\}`)

// conditionType is a bare expression.
type conditionType struct{ textType }

func (conditionType) check(at Source, when string) []string {
	bare := strings.TrimSpace(when)
	switch {
	case bare == "":
		return wrong("blank: write a condition such as %s, or leave it out", at.quote(`query.mode == "async"`))
	case strings.ContainsFunc(when, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }):
		return wrong("%q contains control characters: remove them", when)
	case strings.HasPrefix(bare, "#{"):
		if inner := strings.TrimSuffix(bare[len("#{"):], "}"); !strings.Contains(inner, "#{") && strings.Count(inner, "{") == strings.Count(inner, "}") {
			bare = inner // one part
		} else if bare = parts.ReplaceAllString(bare, "$1"); strings.Contains(bare, "#{") {
			return wrong("a condition is a bare expression: write it without #{…}")
		}
		return wrong("a condition is a bare expression: write %s without #{…}", at.quote(strings.TrimSpace(bare)))
	}
	return nil
}

// templateCount is the message for too many templates.
const templateCount = "%d templates: write 1 to %d"

// listType is a list of texts.
type listType struct{ form strictyaml.Form }

func (t listType) read(d *strictyaml.Doc, v strictyaml.Value) ([]string, bool) {
	return d.Texts(v, t.form, maxTemplates, templateCount)
}
func (listType) set(to *[]string, _ string, _ Layer, v any) error { return assign(to, v) }
func (listType) show(v []string) any                              { return v }
func (listType) check(Source, []string) []string                  { return nil }

// boolType is true or false.
type boolType struct{}

func (boolType) read(d *strictyaml.Doc, v strictyaml.Value) (bool, bool) { return d.Bool(v) }
func (boolType) set(to *bool, _ string, _ Layer, v any) error            { return assign(to, v) }
func (boolType) show(v bool) any                                         { return v }
func (boolType) check(Source, bool) []string                             { return nil }

// numberType is a whole number from least to most. Messages for other numbers end with advice.
type numberType struct {
	least, most int
	advice      string
}

func (numberType) read(d *strictyaml.Doc, v strictyaml.Value) (int, bool) { return d.Int(v, "10") }
func (numberType) set(to *int, _ string, _ Layer, v any) error            { return assign(to, v) }
func (numberType) show(v int) any                                         { return v }

func (t numberType) check(_ Source, n int) []string {
	if n < t.least || n > t.most {
		return wrong("%d is out of range: write %s", n, t.advice)
	}
	return nil
}

// wordType is one of a few words.
type wordType[T ~string] struct{ wordList }

// read accepts a word that YAML reads as null, such as NULL.
func (t wordType[T]) read(d *strictyaml.Doc, v strictyaml.Value) (T, bool) {
	n := v.Node
	isNull := n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value != ""
	if !isNull && !d.Is(v, yaml.ScalarNode, "one of "+strings.Join(t.known, ", ")) {
		return "", false
	}
	if err := t.wordList.check(strictyaml.Clip(n.Value)); err != nil {
		d.Reportf(n, v.Field, "%s", err)
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

// check spells the known words as the place does, because Go has constants for them.
func (t wordType[T]) check(at Source, v T) []string {
	if v == "" {
		return nil
	}
	err := t.wordList.check(string(v))
	unknown, ok := errors.AsType[*failpolicy.UnknownWordError](err)
	if !ok || at.inFile() {
		return wrongLines(err)
	}
	noun := unknown.What
	if strings.Contains(noun, "_") {
		noun = goName(noun)
	}
	text := fmt.Sprintf("unknown %s %q", noun, unknown.Word)
	if unknown.Suggestion != "" {
		text += ": write " + at.spell(unknown.Suggestion)
	}
	known := make([]string, len(unknown.Known))
	for i, word := range unknown.Known {
		known[i] = at.spell(word)
	}
	return wrong("%s (one of %s)", text, strings.Join(known, ", "))
}

// endpointType is the place where a rule applies. A file writes it as http, grpc or func, and a .proto
// implies it by the position beside a method, so neither reads this type.
type endpointType struct{}

func (endpointType) read(*strictyaml.Doc, strictyaml.Value) (Endpoint, bool) {
	return Endpoint{}, false
}

func (endpointType) set(to *Endpoint, _ string, _ Layer, v any) error { return assign(to, v) }
func (endpointType) show(v Endpoint) any                              { return v.String() }
func (endpointType) check(Source, Endpoint) []string                  { return nil }

// statusesType is the statuses of the causes: {busy: {http: 423, grpc: ABORTED}}.
type statusesType struct{}

func (statusesType) read(d *strictyaml.Doc, v strictyaml.Value) (to failpolicy.Statuses, ok bool) {
	ok = causeMapping.ReadFilled(d, v, statusExample, &to)
	return to, ok
}

// set stores one field of a status, such as ".busy.http".
func (statusesType) set(to *failpolicy.Statuses, part string, _ Layer, v any) error {
	cause, half, _ := strings.Cut(strings.TrimPrefix(part, "."), ".")
	status := to.Of(failpolicy.Cause(cause))
	switch {
	case status == nil:
		return fmt.Errorf("a refused client sees no status of %s", cause)
	case half == "http" && v == 0:
		return fmt.Errorf("0 is not a status: write one of 400 to 599, such as %d", failpolicy.Cause(cause).Status().HTTP)
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

func (statusesType) check(_ Source, s failpolicy.Statuses) []string { return wrongLines(s.Validate()) }

const (
	halfExample   = "{http: 423, grpc: ABORTED}"
	statusExample = "busy: " + halfExample
)

//nolint:gochecknoglobals // tables that are only read
var (
	causeMapping = strictyaml.NewMapping("status", causeKeys(), map[string]strictyaml.Hint{
		"canceled":  {Message: "a caller that is gone sees no status: remove it"},
		"cancelled": {Message: "a caller that is gone sees no status: remove it"},
		"http":      {Message: "belongs to a cause: write " + statusExample},
		"grpc":      {Message: "belongs to a cause: write " + statusExample},
		"taken":     {Meant: "busy"},
		"locked":    {Meant: "busy"},
		"timeout":   {Meant: "busy"},
		"redis":     {Meant: "backend"},
	})
	statusMapping = strictyaml.NewMapping("a status", []strictyaml.Key[failpolicy.Status]{
		{Name: "http", Field: "http", Read: readHTTPStatus},
		{Name: "grpc", Field: "grpc", Read: readCode},
	}, nil)
)

// causeKeys returns the causes whose status a rule can change.
func causeKeys() []strictyaml.Key[failpolicy.Statuses] {
	var keys []strictyaml.Key[failpolicy.Statuses]
	for _, cause := range failpolicy.Causes() {
		if (&failpolicy.Statuses{}).Of(cause) == nil {
			continue
		}
		read := func(d *strictyaml.Doc, v strictyaml.Value, to *failpolicy.Statuses) bool {
			return statusMapping.ReadFilled(d, v, halfExample, to.Of(cause))
		}
		keys = append(keys, strictyaml.Key[failpolicy.Statuses]{Name: string(cause), Field: string(cause), Read: read})
	}
	return keys
}

func readHTTPStatus(d *strictyaml.Doc, v strictyaml.Value, to *failpolicy.Status) bool {
	n, ok := d.Int(v, "409")
	if ok && (n < 400 || n > 599) {
		d.Reportf(v.Node, v.Field, "%d is not the status of an error: write one of 400 to 599, such as 409", n)
		return false
	}
	to.HTTP = n
	return ok
}

// lastCode is the number of UNAUTHENTICATED, the last code of gRPC.
const lastCode = 16

func readCode(d *strictyaml.Doc, v strictyaml.Value, to *failpolicy.Status) bool {
	if !d.Is(v, yaml.ScalarNode, "a code such as ABORTED") {
		return false
	}
	n := v.Node
	if i, err := strconv.Atoi(n.Value); err == nil && i > 0 && i <= lastCode {
		d.Reportf(n, v.Field, "%s: write the code's name, %s", strictyaml.ScalarText(n), failpolicy.Code(i))
		return false
	}
	code, err := failpolicy.ParseCode(strictyaml.Clip(n.Value))
	if err != nil {
		d.Reportf(n, v.Field, "%s", err)
		return false
	}
	to.GRPC = code
	return true
}
