package strictyaml_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// What cannot be YAML at all is told with its place, before anything else.
func TestParse_RefusesWhatIsNoText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\xff\xfea\x00":                   "1:1: byte 0xff is not UTF-8: save the file as UTF-8",
		"\xfe\xff\x00a":                   "1:1: byte 0xfe is not UTF-8: save the file as UTF-8",
		"a: b\nc: \xe9t\xe9\n":            "2:4: byte 0xe9 is not UTF-8: save the file as UTF-8",
		"ключ: \xff":                      "1:7: byte 0xff is not UTF-8: save the file as UTF-8",
		"a: b\rc: d\r":                    "1:5: U+000D is invisible and not allowed in a rule file: remove it",
		"a: b\r\nc: d\r":                  "2:5: U+000D is invisible and not allowed in a rule file: remove it",
		"a: \u0085b":                      "1:4: U+0085 is invisible and not allowed in a rule file: remove it",
		"a: b\u2028c: d":                  "1:5: U+2028 is invisible and not allowed in a rule file: remove it",
		"a: \x00":                         "1:4: U+0000 is invisible and not allowed in a rule file: remove it",
		"a: b\n\x1b[0m":                   "2:1: U+001B is invisible and not allowed in a rule file: remove it",
		"a: \"\x7f\"":                     "1:5: U+007F is invisible and not allowed in a rule file: remove it",
		"a: b\n# \uffff":                  "2:3: U+FFFF is invisible and not allowed in a rule file: remove it",
		"a: \ufffe":                       "1:4: U+FFFE is invisible and not allowed in a rule file: remove it",
		"a: [\x01":                        "1:5: U+0001 is invisible and not allowed in a rule file: remove it",
		strings.Repeat("\n", 4<<20) + "a": "larger than 4 MiB: split the rules between programs",
		"[" + strings.Repeat("a,", 300_000) + "]": "more than 300000 lines and values: split the rules between programs",
		strings.Repeat("a\n", 300_001):            "more than 300000 lines and values: split the rules between programs",
		strings.Repeat("[", 20_000):               "1:10001: nested too deeply: a rule file has a few levels",
	} {
		doc, problems := parsed(text)
		if doc != nil || len(*problems) != 1 || (*problems)[0] != want {
			t.Errorf("%.40q: got %q, want %q", text, *problems, want)
		}
	}
}

// Empty lines and comments are no values, however many there are.
func TestParse_CountsNoComments(t *testing.T) {
	t.Parallel()
	text := "a: b\n" + strings.Repeat("# c\n", 500_000) + strings.Repeat("\n", 500_000)
	if doc, problems := parsed(text); doc == nil || len(*problems) > 0 {
		t.Errorf("got %q", *problems)
	}
}

func TestParse_OfNothingIsNull(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n\n", "# a\n", "---\n", "\ufeff", "~", "null\n"} {
		doc, problems := parsed(text)
		if doc == nil || len(*problems) > 0 || doc.Root.Kind != yaml.ScalarNode || doc.Root.Tag != "!!null" {
			t.Errorf("%q: got %+v, %q", text, doc, *problems)
		}
	}
}

// Columns count characters, and lines end as in an editor.
func TestParse_PlacesAreThoseOfAnEditor(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ключ: @\n":                "1:7: a value that begins with @",
		"a: b\r\nc: d\r\n𝄞: @\r\n": "3:4: a value that begins with @",
		"\ufeffa: @\n":             "1:4: a value that begins with @",
		"# it's\n\n\na: @\n":       "4:4: a value that begins with @",
		"日本: [語, #{本}]\n":          `1:9: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	} {
		if _, problems := parsed(text); len(*problems) != 1 || !strings.HasPrefix((*problems)[0], want) {
			t.Errorf("%q: got %q, want %q", text, *problems, want)
		}
	}
}

// A line that nobody wrote by hand is refused like others, without showing it.
func TestParse_ShowsNoEndlessLine(t *testing.T) {
	t.Parallel()
	rest := strings.Repeat("b", 5000)
	for _, text := range []string{"a: b: " + rest, "a: @" + rest, "a: [#{" + rest + "}]", "a: 'b' " + rest} {
		doc, problems := parsed(text)
		if doc != nil || len(*problems) != 1 || len((*problems)[0]) > 200 {
			t.Errorf("%.20s…: got %q", text, *problems)
		}
	}
	doc, problems := parsed("a: '" + rest + "'")
	if _, ok := doc.Text(onlyValue(t, doc), strictyaml.Form{Long: true}); !ok {
		t.Errorf("got %q", *problems)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	if got := strictyaml.Clip("word"); got != "word" {
		t.Errorf("got %q", got)
	}
	for _, text := range []string{long("b", 1001), long("ключ", 500), long("𝄞", 400)} {
		got := strictyaml.Clip(text)
		if len(got) > strictyaml.MaxWord+len("…") || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("got %d bytes: %q", len(got), got)
		}
	}
	var told strictyaml.Problem
	doc := strictyaml.Parse([]byte("a: b"), func(p strictyaml.Problem) { told = p })
	doc.Reportf(doc.Root, "a", "%s", long("b", 5000))
	if len(told.Message) > strictyaml.MaxWord+len("…") || told.Line != 1 || told.Column != 1 || told.Field != "a" {
		t.Errorf("got %d:%d: %s, %d bytes", told.Line, told.Column, told.Field, len(told.Message))
	}
}

// FuzzParse: whatever is written, every problem is in the text, says what to do, and is
// told of a text that is no YAML; and every value can be asked for everything.
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
				t.Errorf("%q: no YAML, with %d problems", text, problems)
			}
			return
		}
		readAll(doc, strictyaml.Value{Field: "root", Node: doc.Root})
		doc.ReportComments()
	})
}

// readAll asks for a value in every way, and for what is in it.
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
