package strictyaml_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// reading reads the value of the only name in a text and reports whether it could be read.
type reading func(doc *strictyaml.Doc, v strictyaml.Value) (any, bool)

// readings contains the results of each method that reads a value: the value or the message.
var readings = map[string]struct {
	read reading
	good map[string]any
	bad  map[string]string // the only problem
}{
	"text": {
		func(doc *strictyaml.Doc, v strictyaml.Value) (any, bool) { return doc.Text(v, strictyaml.Form{}) },
		map[string]any{
			"a: yes":           "yes",
			"a: '“b”'":         "“b”",
			"a: b":             "b",
			"a: b c":           "b c",
			"a: |\n  b":        "b",
			"a: 'it''s'":       "it's",
			`a: "b\x41"`:       "bA",
			`a: "10"`:          "10",
			"a: b:c":           "b:c",
			"a: b#c":           "b#c",
			"a: b # c":         "b",
			"a: 'b #{c}'":      "b #{c}",
			"a: |-\n  b":       "b",
			"a: >-\n  b":       "b",
			"a: ключ":          "ключ",
			"{a: b}":           "b",
			"a: \"b\" # #{c}":  "b",
			"a:\n  b":          "b",
			"a: b “c”":         "b “c”",
			"a: '~'":           "~",
			"a: --- b":         "--- b",
			"a: 'b ] c'":       "b ] c",
			"a: -b":            "-b",
			"a: 10s":           "10s",
			"a: 'b'  # it's c": "b",
		},
		map[string]string{
			"a:":                    "1:1: a: empty: write text, or remove the line",
			"a: ''":                 "1:4: a: empty: write a value, or remove the line",
			"a: ' '":                "1:4: a: empty: write a value, or remove the line",
			"a: null":               "1:4: a: null is not a value: write text, or remove the line",
			"a: ~":                  "1:4: a: ~ is not a value: write text, or remove the line",
			"a: 10":                 `1:4: a: 10 is a number: write it as text, in quotes: "10"`,
			"a: 1.5":                `1:4: a: 1.5 is a number: write it as text, in quotes: "1.5"`,
			"a: true":               `1:4: a: true is a bool: write it as text, in quotes: "true"`,
			"a: 2024-01-02":         `1:4: a: 2024-01-02 is a date: write it as text, in quotes: "2024-01-02"`,
			"a: <<":                 `1:4: a: << is YAML's merge key: write it as text, in quotes: "<<"`,
			"a: [b]":                "1:4: a: a list: write text",
			"a:\n  - b":             "2:3: a: a list: write text",
			"a:\n  b: c":            "2:3: a: a mapping: write text",
			"a: {b}":                "1:4: a: YAML takes {…} for a mapping: write text, in quotes",
			"key: [b]":              "1:6: key: a list: write keys for several templates",
			"a: b\n  c":             "1:4: a: goes on in the next line: write one line; check its quotes and the indentation of the next",
			"a: \"b\n  c\"":         "1:4: a: goes on in the next line: write one line; check its quotes and the indentation of the next",
			"a: 'b\n  c'":           "1:4: a: goes on in the next line: write one line; check its quotes and the indentation of the next",
			"a: |\n  b\n":           `1:4: a: "b\n" has line breaks or control characters: write one line without them, behind the colon, in quotes`,
			"a: >+\n  b \"c\"\n":    `1:4: a: "b \"c\"\n" has line breaks or control characters: write one line without them, behind the colon, in quotes`,
			"a: |-\n  b\n  c":       `1:4: a: "b\nc" has line breaks or control characters: write one line without them, behind the colon, in quotes`,
			`a: "b\nc"`:             `1:4: a: "b\nc" has line breaks or control characters: write one line without them, behind the colon, in quotes`,
			`a: "b\tc"`:             `1:4: a: "b\tc" has line breaks or control characters: write one line without them, behind the colon, in quotes`,
			"a: “b”":                "1:4: a: “ is not a quote in YAML, but part of the text: write straight quotes",
			"a: «b» # c":            "1:4: a: « is not a quote in YAML, but part of the text: write straight quotes",
			"a: “b":                 "1:4: a: “ is not a quote in YAML, but part of the text: write straight quotes",
			"a: ‘it’s’":             "1:4: a: ‘ is not a quote in YAML, but part of the text: write straight quotes",
			"a: b #{c}":             `1:6: a: YAML takes #{…} after a space for a comment: quote the whole value: a: "b #{c}"`,
			"a: #{b}":               `1:4: a: YAML takes #{…} after a space for a comment: quote the whole value: a: "#{b}"`,
			"a: b #{c} # d":         `1:6: a: YAML takes #{…} after a space for a comment: quote the whole value: a: "b #{c} # d"`,
			"a: 'b' #{c}":           "1:8: a: YAML takes #{…} after a space for a comment: quote the whole value",
			"{a: b #{c}\n}":         "1:7: a: YAML takes #{…} after a space for a comment: quote the whole value",
			"a: b #{c":              `1:6: a: YAML takes #{…} after a space for a comment: quote the whole value: a: "b #{c"`,
			"a: b #{c[\"d\"]}":      `1:6: a: YAML takes #{…} after a space for a comment: quote the whole value: a: 'b #{c["d"]}'`,
			"http: GET /a #{b}":     `1:14: http: YAML takes #{…} after a space for a comment: quote the whole value: http: "GET /a #{b}"`,
			"a: !b c":               "1:4: a: " + noYAML,
			"a: ! b":                "1:4: a: " + noYAML,
			"a: !!str b":            "1:4: a: " + noYAML,
			"a: &b c":               "1:4: a: " + noYAML,
			"a: " + long("b", 1001): "1:4: a: 1001 bytes long: write 1000 at most",
		},
	},
	"long text of lines": {
		func(doc *strictyaml.Doc, v strictyaml.Value) (any, bool) {
			return doc.Text(v, strictyaml.Form{Lines: true, Blank: true, Long: true})
		},
		map[string]any{
			"a: ''":                 "",
			"a: |\n  b\n  c\n":      "b\nc\n",
			"a: b\n  c":             "b c",
			`a: "b\tc"`:             "b\tc",
			"a: " + long("b", 2001): long("b", 2001),
		},
		map[string]string{
			"a:":        "1:1: a: empty: write text, or remove the line",
			"a: 10":     `1:4: a: 10 is a number: write it as text, in quotes: "10"`,
			"a: b #{c}": `1:6: a: YAML takes #{…} after a space for a comment: quote the whole value: a: "b #{c}"`,
		},
	},
	"message": {
		func(doc *strictyaml.Doc, v strictyaml.Value) (any, bool) { return doc.Text(v, strictyaml.Form{}) },
		map[string]any{"message: '“b”, c'": "“b”, c", "message: |-\n  “b”": "“b”"},
		map[string]string{"message: “b”, c": "1:10: message: “ is not a quote in YAML, but part of the text: write straight quotes"},
	},
	"bool": {
		func(doc *strictyaml.Doc, v strictyaml.Value) (any, bool) { return doc.Bool(v) },
		map[string]any{"a: true": true, "a: false": false, "a: True": true, "a: FALSE": false, "a: true # b": true},
		map[string]string{
			"a: yes":     `1:4: a: "yes" is text: write true or false, without quotes`,
			"a: Off":     `1:4: a: "Off" is text: write true or false, without quotes`,
			"a: y":       `1:4: a: "y" is text: write true or false, without quotes`,
			"a: 1":       "1:4: a: 1 is a number: write true or false, without quotes",
			"a: 0":       "1:4: a: 0 is a number: write true or false, without quotes",
			"a: 'true'":  `1:4: a: "true" is text: write true or false, without quotes`,
			"a: \"NO\"":  `1:4: a: "NO" is text: write true or false, without quotes`,
			"a: maybe":   `1:4: a: "maybe" is text: write true or false, without quotes`,
			"a: 2":       "1:4: a: 2 is a number: write true or false, without quotes",
			"a: [true]":  "1:4: a: a list: write true or false",
			"a: {b: c}":  "1:4: a: a mapping: write true or false",
			"a:":         "1:1: a: empty: write true or false, or remove the line",
			"a: true #{": `1:9: a: YAML takes #{…} after a space for a comment: quote the whole value: a: "true #{"`,
		},
	},
	"number": {
		func(doc *strictyaml.Doc, v strictyaml.Value) (any, bool) { return doc.Int(v, "10") },
		map[string]any{"a: 0": 0, "a: 10": 10, "a: -3": -3, "a: 9223372036854775807": 9223372036854775807},
		map[string]string{
			"a: '10'":                `1:4: a: "10" is text: write a plain decimal number without quotes, such as 10`,
			"a: 010":                 "1:4: a: 010 is a number: write a plain decimal number without quotes, such as 10",
			"a: 0x1F":                "1:4: a: 0x1F is a number: write a plain decimal number without quotes, such as 10",
			"a: 1_000":               "1:4: a: 1_000 is a number: write a plain decimal number without quotes, such as 10",
			"a: 1e3":                 "1:4: a: 1e3 is a number: write a plain decimal number without quotes, such as 10",
			"a: 1.0":                 "1:4: a: 1.0 is a number: write a plain decimal number without quotes, such as 10",
			"a: +1":                  "1:4: a: +1 is a number: write a plain decimal number without quotes, such as 10",
			"a: 9223372036854775808": "1:4: a: 9223372036854775808 is a number: write a plain decimal number without quotes, such as 10",
			"a: ten":                 `1:4: a: "ten" is text: write a plain decimal number without quotes, such as 10`,
			"a: true":                "1:4: a: true is a bool: write a plain decimal number without quotes, such as 10",
			"a: [1]":                 "1:4: a: a list: write a decimal number such as 10",
			"a: ":                    "1:1: a: empty: write a decimal number such as 10, or remove the line",
		},
	},
	"list": {
		func(doc *strictyaml.Doc, v strictyaml.Value) (any, bool) {
			list, ok := doc.Texts(v, strictyaml.Form{}, 10, "%d texts: write %d at most")
			return len(list), ok
		},
		map[string]any{"a: [b, c]": 2, "a: []": 0, "a:\n- b": 1, "a:\n  - b\n  - c": 2},
		map[string]string{
			"a: b":      `1:4: a: "b" is text: write a: ["b"]`,
			"a: 'b\"'":  `1:4: a: "b\"" is text: write a: ['b"']`,
			"a: 10":     `1:4: a: 10 is a number: write a: ["10"]`,
			"a: {b: c}": `1:4: a: a mapping: write a: ["…", "…"]`,
			"a:":        `1:1: a: empty: write a: ["…", "…"], or remove the line`,
			"a: &b [c]": "1:4: a: " + noYAML,
		},
	},
	"name": {
		func(doc *strictyaml.Doc, v strictyaml.Value) (any, bool) { return doc.Name("top", v.Key) },
		map[string]any{"a: b": "a", "'a b': c": "a b", "ä: b": "ä", `"10": b`: "10", "? a\n: b": "a"},
		map[string]string{
			"10: b":      "1:1: top: 10 is a number, not a name: quote it if it is a name, or part of a value",
			"true: b":    "1:1: top: true is a bool, not a name: quote it if it is a name, or part of a value",
			": b":        "1:1: top: a name is missing before the colon",
			"~: b":       "1:1: top: a name is missing before the colon",
			"[a]: b":     "1:1: top: a list, not a name: quote it if it is a name, or part of a value",
			"{a: b}: c":  "1:1: top: a mapping, not a name: quote it if it is a name, or part of a value",
			"<<: b":      "1:1: top: " + noYAML,
			"&a b: c":    "1:1: top: " + noYAML,
			"!a b: c":    "1:1: top: " + noYAML,
			"!!str a: b": "1:1: top: " + noYAML,
		},
	},
}

// noYAML is the message for the parts of YAML that a rule file does not need.
const noYAML = "aliases, anchors, merge keys and tags are not read here: write the value out, in quotes if it begins with *, & or !; values for several rules get a name under profiles:"

func TestDoc_Values(t *testing.T) {
	t.Parallel()
	for name, r := range readings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for text, want := range r.good {
				doc, problems := parsed(text)
				if got, ok := r.read(doc, firstValue(t, doc)); !ok || !reflect.DeepEqual(got, want) || len(*problems) > 0 {
					t.Errorf("%q: got %#v, %q, want %#v", text, got, *problems, want)
				}
			}
			for text, want := range r.bad {
				doc, problems := parsed(text)
				_, ok := r.read(doc, firstValue(t, doc))
				if doc.ReportComments(); ok || len(*problems) != 1 || (*problems)[0] != want {
					t.Errorf("%q: got %q, read: %t, want\n%s", text, *problems, ok, want)
				}
			}
		})
	}
}

// An alias is refused, and so is its anchor.
func TestDoc_IsPlain(t *testing.T) {
	t.Parallel()
	doc, problems := parsed("a: &x b\nc: *x\n")
	for v := range strictyaml.Pairs(doc.Root, "top.") {
		if doc.IsPlain(v) {
			t.Errorf("%s is plain", v.Field)
		}
	}
	want := []string{
		"1:4: top.a: " + noYAML,
		"2:4: top.c: " + noYAML,
	}
	if !reflect.DeepEqual(*problems, want) {
		t.Errorf("got %q, want %q", *problems, want)
	}
}

func TestValue_Item(t *testing.T) {
	t.Parallel()
	for text, flow := range map[string]bool{"a: [b, c]": true, "a:\n- b\n- c": false, "{a: [b, c]}": true} {
		doc, _ := parsed(text)
		item := firstValue(t, doc).Item(1)
		if item.Field != "a[1]" || item.Key != nil || item.Node.Value != "c" || item.Flow != flow {
			t.Errorf("%q: got %+v", text, item)
		}
	}
}

func TestPairs_Break(t *testing.T) {
	t.Parallel()
	doc, _ := parsed("a: 1\nb: 2\nc: 3\n")
	var fields []string
	for v := range strictyaml.Pairs(doc.Root, "x.") {
		if fields = append(fields, v.Field); len(fields) == 2 {
			break
		}
	}
	if !reflect.DeepEqual(fields, []string{"x.a", "x.b"}) {
		t.Errorf("got %q", fields)
	}
}

func TestDoc_Is(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: b":   `1:4: a: "b" is text: write this`,
		"a: [b]": "1:4: a: a list: write this",
		"a: 1":   "1:4: a: 1 is a number: write this",
	} {
		doc, problems := parsed(text)
		if doc.Is(firstValue(t, doc), yaml.MappingNode, "this") || len(*problems) != 1 || (*problems)[0] != want {
			t.Errorf("%q: got %q, want %q", text, *problems, want)
		}
	}
	doc, problems := parsed("a: {}")
	if !doc.Is(firstValue(t, doc), yaml.MappingNode, "this") {
		t.Errorf("got %q", *problems)
	}
}

// Comments that begin with #{ are reported at the end, unless their line already has a problem.
func TestDoc_ReportComments(t *testing.T) {
	t.Parallel()
	const about = "YAML takes #{ for a comment: write # { if it is one; if not, quote the whole value"
	for text, want := range map[string][]string{
		"#{a}\nb: c\n":                        {"1:1: " + about},
		"b: c\n#{a}\n":                        {"2:1: " + about},
		"b:\n  c: d\n#{a}\n# e\n#{f}\ng: h\n": {"3:1: " + about, "5:1: " + about},
		"b: [\n  c,\n  #{a},\n]\n":            {"3:3: " + about},
		"b: [c] #{d}\n":                       {"1:8: " + about},
		"b: [ #{c}\n]\n":                      {"1:6: " + about},
		"b: c # #{a}\n":                       nil,
		"b: 'c #{a}'\n":                       nil,
		"b: |\n  #{a}\n  c #{a}\n":            nil,
		"b: 10 #{a}\n":                        {`1:4: b: 10 is a number: write it as text, in quotes: "10"`},
	} {
		doc, problems := parsed(text)
		if v := firstValue(t, doc); strings.HasPrefix(text, "b: 10") {
			doc.Reportf(v.Node, v.Field, "10 is a number: write it as text, in quotes: %q", "10")
		}
		doc.ReportComments()
		if len(*problems) != len(want) {
			t.Errorf("%q: got %q, want %q", text, *problems, want)
			continue
		}
		for i := range want {
			if (*problems)[i] != want[i] {
				t.Errorf("%q: got %q, want %q", text, (*problems)[i], want[i])
			}
		}
	}
}

// problemPlace matches the place before a message.
var problemPlace = regexp.MustCompile(`^\d+:\d+: (?:a: )?`)

// correctedLine returns the line that a message shows.
func correctedLine(t *testing.T, text, problem string) string {
	t.Helper()
	_, line, found := strings.Cut(problemPlace.ReplaceAllString(problem, ""), ": a: ")
	if !found {
		t.Fatalf("%q: no line is shown in %s", text, problem)
	}
	return "a: " + line
}

// The line that a message shows is YAML without mistakes.
func TestDoc_ShownCorrections(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // one line, with its meaning
		"a: b #{c}":          `b #{c}`,
		"a: #{b}":            `#{b}`,
		"a: b #{c[\"d\"]} e": `b #{c["d"]} e`,
		"a: b #{c} it's":     `b #{c} it's`,
		"a: b, c #{d}":       `b, c #{d}`,
		"a: b: c":            `b: c`,
		"a: b: 'c'":          `b: 'c'`,
		"a: @b":              `@b`,
		"a: `b`":             "`b`",
		"a: %b":              `%b`,
		"a: |b":              `|b`,
		"a: b: #{c}":         `b: #{c}`,
		"a: *":               `*`,
	} {
		doc, problems := parsed(text + "\n")
		if doc != nil {
			doc.Text(firstValue(t, doc), strictyaml.Form{})
		}
		if len(*problems) != 1 {
			t.Errorf("%q: got %q, want one problem", text, *problems)
			continue
		}
		line := correctedLine(t, text, (*problems)[0])
		again, more := parsed(line + "\n")
		if again == nil {
			t.Errorf("%q: the shown line %q is refused: %q", text, line, *more)
			continue
		}
		got, ok := again.Text(firstValue(t, again), strictyaml.Form{})
		if again.ReportComments(); !ok || len(*more) > 0 || got != want {
			t.Errorf("%q: the shown line %q is read as %q, %q; want %q", text, line, got, *more, want)
		}
	}
}

// FuzzParse checks that every problem has a message and a place in the text, that every text that is not YAML
// is reported, and that every method can be called for every value.
func FuzzParse(f *testing.F) {
	for text := range syntaxErrors {
		f.Add(text)
	}
	for _, r := range readings {
		for text := range r.good {
			f.Add(text)
		}
		for text := range r.bad {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 10_000 {
			return
		}
		lines := strings.Split(strings.TrimLeft(text, "\ufeff"), "\n")
		problems := 0
		doc := strictyaml.Parse([]byte(text), func(p strictyaml.Problem) {
			problems++
			isPlace := p.Line >= 1 && p.Line <= len(lines)+1 && p.Column >= 1
			if isPlace && p.Line <= len(lines) {
				isPlace = p.Column <= utf8.RuneCountInString(lines[p.Line-1])+2
			}
			if !isPlace && p.Line > 0 || p.Message == "" || !utf8.ValidString(p.Message) {
				t.Errorf("%q: got %+v", text, p)
			}
		})
		if doc == nil {
			if problems != 1 {
				t.Errorf("%q: not YAML, with %d problems", text, problems)
			}
			return
		}
		readAll(doc, strictyaml.Value{Field: "root", Node: doc.Root})
		doc.ReportComments()
	})
}

// readAll reads a value and its parts by every method.
func readAll(doc *strictyaml.Doc, v strictyaml.Value) {
	if v.Node.Kind == yaml.AliasNode {
		return
	}
	for _, r := range readings {
		if v.Key != nil {
			r.read(doc, v)
		}
	}
	doc.Text(v, strictyaml.Form{})
	switch v.Node.Kind {
	case yaml.MappingNode:
		for pair := range strictyaml.Pairs(v.Node, v.Field+".") {
			readAll(doc, pair)
		}
	case yaml.SequenceNode:
		for i := range v.Node.Content {
			readAll(doc, v.Item(i))
		}
	}
}
