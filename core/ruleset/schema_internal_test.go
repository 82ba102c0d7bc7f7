package ruleset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/failpolicy"
)

// The schema is generated from the table of fields, the comments of the fields in Go, and the additions in
// this file. With -update the test writes it.
func TestSchema_Generated(t *testing.T) {
	t.Parallel()
	document, err := schemaObject(t).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, document, "", "  "); err != nil {
		t.Fatal(err)
	}
	text.WriteByte('\n')
	golden.Assert(t, text.String(), "../locks.schema.json")
}

const (
	visible = `^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$`
	aTime   = `(\d+(\.\d*)?(ns|us|µs|μs|ms|s|m|h))*(\d*[1-9]\d*(\.\d*)?|\d+\.\d*[1-9]\d*)(ns|us|µs|μs|ms|s|m|h)(\d+(\.\d*)?(ns|us|µs|μs|ms|s|m|h))*`
	dynamic = `#\{|\$\{|\{\{|[\x00-\x1f\x7f-\x9f]`
)

// beside contains additions to the schemas of fields: patterns, examples, and messages for editors.
var beside = map[string]object{
	"http": {
		{"not", object{{"pattern", dynamic}}},
		{"type", "string"},
		{"pattern", `^\s*(\*|[^\sa-z/]+ +((/([^/*\s][^/\s]*|\*[^/\s]+)?)+(/\*)?|/?\*))\s*$`},
		{"description", "An HTTP method and the route as it was registered. * stands for any method, and at the end of a path for everything below it. A CORS preflight needs a rule that names OPTIONS."},
		{"examples", []string{"POST /orders/:id/pay", "POST /orders/*", "* /orders/:id", "*"}},
		{"patternErrorMessage", "Write a method in capitals and a path, such as POST /orders/:id/pay."},
	},
	"grpc": {
		{"not", object{{"pattern", dynamic}}},
		{"type", "string"},
		{"pattern", `^\s*(\*|/([^/*\s][^/\s]*|\*[^/\s]+)/[^/\s]+)\s*$`},
		{"description", "A full gRPC method. * stands for every method, of a service or of all services. A * alone does not match health checking and reflection."},
		{"examples", []string{"/shop.Orders/Pay", "/shop.Orders/*", "*"}},
		{"patternErrorMessage", "Write a full method such as /shop.Orders/Pay."},
	},
	"func": {
		{"not", object{{"pattern", dynamic}}},
		{"type", "string"},
		{"pattern", `\S`},
		{"description", "The name of a function that the program wraps."},
		{"examples", []string{"close-day"}},
		{"patternErrorMessage", "Write a name such as close-day."},
	},
	"services": {
		{"items", object{{"type", "string"}, {"pattern", visible}, {"patternErrorMessage", "Write the name of a program."}}},
		{"type", "array"},
		{"minItems", 1},
		{"description", "The programs to which the rule applies, if several share the file. Default: all."},
	},
	"name": {
		{"not", object{{"pattern", dynamic}}},
		{"maxLength", maxNameLength},
		{"patternErrorMessage", "Write a word such as pay-order, or leave it out."},
	},
	"key":      {{"examples", []string{"order:pay:#{path.id}"}}, {"patternErrorMessage", "Write a template such as order:pay:#{path.id}."}},
	"fallback": {{"patternErrorMessage", "Write the name of a handler."}},
	"when":     {{"pattern", `^\s*([^\s#]|#[^{]|#$)`}, {"patternErrorMessage", `Write a bare expression such as query.mode == "async", without #{…}.`}},
	"response": {
		{"pattern", `\S`},
		{"contentMediaType", "application/json"},
		{"examples", []string{`{"status":"pending"}`}},
		{"patternErrorMessage", "Write a JSON document, in single quotes."},
	},
	"prefix":      {{"not", object{{"pattern", dynamic}}}},
	"on_busy":     {{"description", "The answer to a call that could not take the lock within wait_time, and to a call inside a debounce window."}},
	"on_backend":  {{"description", "The answer to a call while Redis cannot say whether the lock is free."}},
	"on_key":      {{"description", "The answer to a request that yields no key."}},
	"on_overload": {{"description", "The answer to a call that finds too many waiters."}},
	"on_lost":     {{"description", "The effect of a loss of the lock on the running handler. cancel: its context ends. ignore: nothing. fail: its context ends, and the caller gets an error in any case; an HTTP route needs a buffer for it. Default: cancel."}},
	"key_format":  {{"description", "How values enter the key. encode: characters that would make two keys ambiguous are percent-encoded. strict: values with such characters are refused, for keys that are shared with programs which do not encode. Default: encode."}},
	"status":      {{"description", "The status that a refused client sees, for each cause: an HTTP status, a gRPC code or both. The default of busy is 409, ABORTED, and for a semaphore 429, RESOURCE_EXHAUSTED."}},
	"debounce":    {{"description", "Refuses further calls for this long after a call succeeded: without an error, over HTTP with 2xx or 303. The watchdog holds the lock while the handler runs, and no call waits for it. read and semaphore have no window, because several calls hold them at a time."}},
	"unmatched":   {{"description", "The severity of a rule that matches no endpoint of the program. error: start-up and reload fail. warn: it is reported. ignore: nothing happens. Default: error."}},
	"uncovered":   {{"description", "The severity of an endpoint that may modify data and has no rule, not even none: true. An HTTP endpoint may modify data unless its method is GET, HEAD, OPTIONS or TRACE, a gRPC method unless its idempotency_level is NO_SIDE_EFFECTS. error: start-up and reload fail. warn: it is reported. ignore: nothing happens. Default: ignore."}},
	"profile": {
		{"description", "The profile whose values the rule takes for the fields that it does not set: one under profiles, or quick (3s wait, 10s lease), normal (5s, 30s), heavy (10s, 60s), long (10s, watchdog)."},
		{"not", object{{"const", "default"}}},
		{"examples", Profiles()},
		{"patternErrorMessage", "Write the name of a profile."},
	},
}

// keywords is the order of the members of a schema.
var keywords = []string{
	"$schema", "$id", "$ref", "$defs", "allOf", "not", "if", "then", "else", "properties", "items", "additionalProperties", "propertyNames",
	"type", "enum", "const", "maximum", "minimum", "maxLength", "minLength", "pattern", "contentMediaType", "maxItems", "minItems", "uniqueItems",
	"minProperties", "required", "title", "description", "default", "examples", "patternErrorMessage",
}

func sorted(o object) object {
	slices.SortStableFunc(o, func(a, b member) int {
		return slices.Index(keywords, a.name) - slices.Index(keywords, b.name)
	})
	return o
}

func schemaObject(t *testing.T) object {
	t.Helper()
	rules, settings := comments(t, "rule.go", "Rule"), comments(t, "settings.go", "Settings")
	defs := map[string]object{
		"Profile": {
			{"properties", references(namesOf(sharedFields()))},
			{"additionalProperties", false},
			{"type", "object"},
			{"description", "Values for the rules that name this profile, and for all rules if its name is default."},
		},
		"Rule": {
			{"allOf", conditions()},
			{"properties", references(ruleMapping.Names())},
			{"additionalProperties", false},
			{"type", "object"},
			{"description", "A lock around an endpoint."},
		},
		"grpc_code":   {{"type", "string"}, {"enum", codeNames()}, {"description", "The gRPC code."}},
		"http_status": {{"type", "integer"}, {"maximum", 599}, {"minimum", 400}, {"description", "The HTTP status."}},
	}
	for _, name := range []string{"http", "grpc", "func", "services"} {
		defs[name] = beside[name]
	}
	var plain Resolved
	plain.overlay(&Declared{Rule: builtinDefaults()})
	for _, f := range ruleFields[1:] {
		def := slices.Concat(object{{"description", description(t, f.name, f.typ, rules[f.name])}}, beside[f.name], typeSchema(f.typ))
		if !f.isZero(&plain.Rule) {
			def = append(def, member{"default", f.show(&plain.Rule)})
		}
		defs[f.name] = sorted(firstOfEach(def))
	}
	top := object{}
	normal := defaultSettings()
	for _, f := range settingFields {
		def := append(typeSchema(f.typ), member{"description", description(t, f.name, f.typ, settings[f.name])}, member{"default", f.show(&normal)})
		top = append(top, member{f.name, sorted(def)})
	}
	top = append(top,
		member{"profiles", object{
			{"additionalProperties", object{{"$ref", "#/$defs/Profile"}}},
			{"propertyNames", object{{"type", "string"}, {"minLength", 1}}},
			{"type", "object"},
			{"description", "Values for several rules, by name. A rule takes a profile with profile: name. The values of default apply to every rule."},
		}},
		member{"rules", object{
			{"items", object{{"$ref", "#/$defs/Rule"}}},
			{"type", "array"},
			{"description", "The rules. The locks of one endpoint are taken in this order."},
		}},
	)
	all := object{}
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		all = append(all, member{name, defs[name]})
	}
	return object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "https://raw.githubusercontent.com/interlock-go/interlock/main/core/ruleset/locks.schema.json"},
		{"$defs", all},
		{"properties", top},
		{"additionalProperties", false},
		{"type", "object"},
		{"required", []string{"rules"}},
		{"title", "Interlock rules"},
		{"description", "Rules for locks around HTTP routes, gRPC methods and functions."},
	}
}

// firstOfEach keeps the first member with each name.
func firstOfEach(o object) object {
	var first object
	for _, m := range o {
		if !slices.ContainsFunc(first, func(k member) bool { return k.name == m.name }) {
			first = append(first, m)
		}
	}
	return first
}

func references(names []string) object {
	properties := object{}
	for _, name := range names {
		properties = append(properties, member{name, object{{"$ref", "#/$defs/" + name}}})
	}
	return properties
}

// typeSchema returns the schema of a type.
func typeSchema(typ any) object {
	text := object{{"type", "string"}}
	line := append(slices.Clip(text), member{"pattern", visible})
	switch typ := typ.(type) {
	case labelType, textType:
		return line
	case sentenceType, prefixType, conditionType, documentType:
		return text
	case boolType:
		return object{{"type", "boolean"}}
	case numberType:
		return object{{"type", "integer"}, {"maximum", typ.most}, {"minimum", typ.least}}
	case listType:
		return object{
			{"items", append(line, beside["key"]...)}, {"type", "array"}, {"maxItems", maxTemplates}, {"minItems", 1}, {"uniqueItems", true},
		}
	case timeType:
		return timeSchema(typ)
	case statusesType:
		return statusSchema()
	case interface{ words() []string }:
		return object{{"type", "string"}, {"enum", typ.words()}}
	}
	panic(fmt.Sprintf("%T is new: add its schema to this test", typ))
}

func timeSchema(typ timeType) object {
	words, examples := typ.examples()[1:], append([]string{"10s"}, typ.examples()[1:]...)
	advice := map[int]string{0: "Write a time such as 10s.", 1: "Write a time such as 30s, or watchdog.", 2: "Write a time such as 10s, none for a single attempt, or forever."}
	return object{
		{"type", "string"}, {"pattern", "^(" + strings.Join(append(words, aTime), "|") + ")$"}, {"examples", examples}, {"patternErrorMessage", advice[len(words)]},
	}
}

func statusSchema() object {
	causes := object{}
	for _, name := range causeMapping.Names() {
		status := failpolicy.Cause(name).Status()
		causes = append(causes, member{name, object{
			{"properties", object{
				{"http", object{{"$ref", "#/$defs/http_status"}, {"default", status.HTTP}}},
				{"grpc", object{{"$ref", "#/$defs/grpc_code"}, {"default", status.GRPC.String()}}},
			}},
			{"additionalProperties", false},
			{"type", "object"},
			{"minProperties", 1},
			{"description", failpolicy.Cause(name).Title() + "."},
		}})
	}
	return object{{"properties", causes}, {"additionalProperties", false}, {"type", "object"}, {"minProperties", 1}}
}

func codeNames() []string {
	var names []string
	for code := failpolicy.Code(1); code <= lastCode; code++ {
		names = append(names, code.String())
	}
	return names
}

// conditions returns the schemas for combinations of fields.
func conditions() []object {
	needs := func(names ...string) object { return object{{"required", names}} }
	is := func(field string, values ...string) object {
		value := object{{"const", any(values[0])}}
		if len(values) > 1 {
			value = object{{"type", "string"}, {"enum", values}}
		}
		return object{{"properties", object{{field, value}}}, {"required", []string{field}}}
	}
	isTrue := func(field string) object {
		return object{{"properties", object{{field, object{{"const", true}}}}}, {"required", []string{field}}}
	}
	wild := func(transport string) object {
		return object{{"properties", object{{transport, object{{"pattern", `\*\s*$`}}}}}, {"required", []string{transport}}}
	}
	properties := func(o object) object { return object{{"properties", o}} }
	oneKey := properties(object{{"keys", object{{"maxItems", 1}}}})
	kinds := func(is func(KindTraits) bool) []string {
		return words(slices.DeleteFunc(Kinds(), func(k Kind) bool { return !is(k.Traits()) }))
	}
	single := kinds(func(k KindTraits) bool { return !k.Several })
	shared := kinds(func(k KindTraits) bool { return k.Shared })
	fenced := kinds(func(k KindTraits) bool { return k.Token })
	unlimited := kinds(func(k KindTraits) bool { return !k.Permits })
	return []object{
		{{"$comment", "Exactly one endpoint."}, {"oneOf", []object{needs("http"), needs("grpc"), needs("func")}}},
		{{"$comment", "Not key and keys."}, {"not", needs("key", "keys")}},
		{
			{"$comment", "A rule with none: true has no other field. Other rules have a key, unless the .proto or the program may have it."},
			{"if", isTrue("none")},
			{"then", object{{"propertyNames", object{{"enum", []string{"http", "grpc", "func", "services", "none"}}}}}},
			{"else", object{
				{"if", object{{"anyOf", []object{needs("http"), wild("grpc"), wild("func")}}}},
				{"then", object{{"anyOf", []object{needs("key"), needs("keys")}}}},
			}},
		},
		{
			{"$comment", "A debounced call does not wait, and holds its lock until the handler returns."},
			{"if", needs("debounce")},
			{"then", properties(object{
				{"lease_time", object{{"const", "watchdog"}}}, {"on_busy", object{{"not", object{{"const", "proceed"}}}}}, {"wait_time", object{{"const", "none"}}},
			})},
		},
		{
			{"$comment", "A fixed lease ends by itself."},
			{"if", object{{"properties", object{{"lease_time", object{{"not", object{{"const", "watchdog"}}}}}}}, {"required", []string{"lease_time"}}}},
			{"then", properties(object{{"max_hold", false}})},
		},
		{
			{"$comment", "A rule under which no call waits has no waiters and no overload."},
			{"if", object{{"anyOf", []object{needs("debounce"), is("wait_time", "none")}}}},
			{"then", properties(object{{"max_waiters", object{{"maximum", 0}}}, {"on_overload", object{{"const", "error"}}}})},
		},
		{{"$comment", "Locks of these kinds have one key."}, {"if", is("kind", single...)}, {"then", oneKey}},
		{
			{"$comment", "A lock that several calls hold at a time has no token, and no last holder after which a window could begin."},
			{"if", is("kind", shared...)},
			{"then", properties(object{{"debounce", false}, {"token", object{{"const", false}}}})},
		},
		{
			{"$comment", "Locks of these kinds always have a token."},
			{"if", is("kind", fenced...)},
			{"then", properties(object{{"token", object{{"const", true}}}})},
		},
		{{"$comment", "A token belongs to one key."}, {"if", isTrue("token")}, {"then", oneKey}},
		{
			{"$comment", "Only a semaphore has permits. They may come from a profile, a lower layer, or the program."},
			{"if", is("kind", unlimited...)},
			{"then", properties(object{{"permits", false}})},
		},
	}
}

// comments returns the comments of the fields of a struct of this package, by the names of the fields
// outside Go, without the paragraph "In Go …".
func comments(t *testing.T, file, name string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			outside := strings.ToLower(inner.ReplaceAllString(field.Names[0].Name, "${1}_$2"))
			text, _, _ := strings.Cut(field.Doc.Text(), "\n\nIn Go ")
			texts[outside] = strings.Join(strings.Fields(text), " ")
		}
		return false
	})
	return texts
}

var (
	inner = regexp.MustCompile(`([a-z])([A-Z])`)
	link  = regexp.MustCompile(`\[([A-Za-z.]+)\]`)
)

// description returns the description in beside or, if there is none, the comment without its first word and
// with the names of files. For a strategy it adds the meanings of the values.
func description(t *testing.T, name string, typ any, comment string) string {
	t.Helper()
	if i := slices.IndexFunc(beside[name], func(m member) bool { return m.name == "description" }); i >= 0 {
		text := beside[name][i].value.(string)
		if _, ok := typ.(wordType[failpolicy.Strategy]); ok {
			text += meanings(t)
		}
		return text
	}
	_, text, _ := strings.Cut(link.ReplaceAllStringFunc(comment, func(s string) string { return inFile(strings.Trim(s, "[]")) }), " ")
	text = strings.TrimPrefix(text, "is ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// meanings returns the table of strategies of package failpolicy as sentences.
func meanings(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("../../failpolicy/strategy.go")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, row := range regexp.MustCompile(`(?m)^//\t(\w+) +\w+ {2,}(.*)$`).FindAllStringSubmatch(string(source), -1) {
		if slices.Contains(words(failpolicy.Strategies()), row[1]) {
			fmt.Fprintf(&text, " %s: %s.", row[1], row[2])
		}
	}
	return text.String() + " Default: error."
}

func (l wordList) words() []string { return l.known }

// inFile returns a name of Go in the spelling of files.
func inFile(name string) string {
	switch name {
	case "DefaultWaitTime":
		return durationWord(DefaultWaitTime)
	}
	for _, s := range sentinels {
		if s.goName == name {
			return s.word
		}
	}
	return strings.ToLower(inner.ReplaceAllString(name[strings.LastIndexByte(name, '.')+1:], "${1}_$2"))
}
