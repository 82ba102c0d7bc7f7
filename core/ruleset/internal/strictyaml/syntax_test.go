package strictyaml_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// syntaxErrors contains texts that are not YAML, each with its only problem.
var syntaxErrors = map[string]string{
	"a: [b, c\nd: e\n":          "1:4: the bracket that opens here is not closed, or a comma is missing before line 2, column 2",
	"a: [b c, d\n":              "1:4: the bracket that opens here is not closed, or a comma is missing before line 2, column 1",
	"a: {b: c\nd: e\n":          "1:4: the bracket that opens here is not closed, or a comma is missing before line 2, column 2",
	"a: {b: c, d\n":             "1:4: the bracket that opens here is not closed, or a comma is missing before line 2, column 1",
	"a: [b]]\n":                 "1:7: the value goes on after its quotes or brackets: quote the whole value, with ' where it has a \" inside",
	"a: }\n":                    `1:4: a value is missing here, or a comma is too many`,
	"a: b: c\n":                 `1:5: a value with a colon and a space needs quotes: a: "b: c"`,
	"a: http://x: y\n":          `1:12: a value with a colon and a space needs quotes: a: "http://x: y"`,
	"- a: b: c\n":               `1:7: a value with a colon and a space needs quotes: - a: "b: c"`,
	"a:b\nc: d\n":               "2:1: the line above has a value already, or lacks the space after its colon",
	"- a:b\n  c: d\n":           "2:3: the line above has a value already, or lacks the space after its colon",
	"a: b\nc\n":                 "2:1: a colon is missing, or the space after it: write a name, a colon, a space and the value",
	"a: b\n  c: d\n":            "2:3: the line above has a value already, or lacks the space after its colon",
	"a: b\n c: d\n":             "2:2: the line above has a value already, or lacks the space after its colon",
	"  a: b\nc: d\n":            "2:1: not aligned with the lines above",
	"a:\n    b: c\n  d: e\n":    "3:3: not aligned with the lines above",
	"a:\n  - b\n - c\n":         "3:2: not aligned with the lines above",
	"- a: b\n c: d\n":           "2:2: not aligned with the lines above",
	"- a\nb: c\n":               "2:1: not aligned with the lines above",
	"a: b\n- c\n":               "2:1: not aligned with the lines above",
	"- a: b\nc: d\n":            "2:1: not aligned with the lines above",
	"\ta: b\n":                  `1:1: a tab: indent with spaces`,
	"a:\n\tb: c\n":              `2:1: a tab: indent with spaces`,
	"a:\n  b: c\n\td: e\n":      `3:1: a tab: indent with spaces`,
	"- a: b\n\tc: d\n":          `2:1: a tab: indent with spaces`,
	"a: @b\n":                   `1:4: a value that begins with @ needs quotes: a: "@b"`,
	"a: `b`\n":                  "1:4: a value that begins with ` needs quotes: a: \"`b`\"",
	"a: %b\n":                   `1:4: a value that begins with % needs quotes: a: "%b"`,
	"- @b\n":                    `1:3: a value that begins with @ needs quotes: - "@b"`,
	"a: *b\n":                   `1:4: a value that begins with * needs quotes: a: "*b"`,
	"a: * \n":                   `1:4: a value that begins with * needs quotes: a: "*"`,
	"a: &\n":                    `1:4: a value that begins with & needs quotes: a: "&"`,
	"a: !<b\n":                  `1:4: a value that begins with ! needs quotes: a: "!<b"`,
	"a: |b\n":                   `1:4: a value that begins with | needs quotes: a: "|b"`,
	"a: >b c\n":                 `1:4: a value that begins with > needs quotes: a: ">b c"`,
	"a: \"b\n":                  `1:4: the quote that opens here is never closed`,
	"a: 'b\n":                   `1:4: the quote that opens here is never closed`,
	"a: \"b\nc: d\n":            `1:4: the quote that opens here is never closed`,
	"a: 'it's'\n":               "1:8: the value goes on after its quotes or brackets: quote the whole value, with ' where it has a \" inside",
	"a: \"b\" c\n":              "1:8: the value goes on after its quotes or brackets: quote the whole value, with ' where it has a \" inside",
	"a: \"b\" + 'c'\n":          "1:8: the value goes on after its quotes or brackets: quote the whole value, with ' where it has a \" inside",
	"a: 'b' == 'c'\n":           "1:8: the value goes on after its quotes or brackets: quote the whole value, with ' where it has a \" inside",
	"a: \"b\", \"c\"\n":         "1:7: the value goes on after its quotes or brackets: quote the whole value, with ' where it has a \" inside",
	"- \"a\" \"b\"\n":           "1:7: the value goes on after its quotes or brackets: quote the whole value, with ' where it has a \" inside",
	"a: \"\\d\"\n":              `1:5: \ begins an escape between double quotes: write \\, or use single quotes`,
	"a: \"C:\\dir\"\n":          `1:7: \ begins an escape between double quotes: write \\, or use single quotes`,
	"a: \"b\"#{c}\n":            "1:7: the value goes on after its quotes: quote the whole value, or write a space before the comment",
	"a: \"b\"# c\n":             "1:7: the value goes on after its quotes: quote the whole value, or write a space before the comment",
	"a: 'b'#c\n":                "1:7: the value goes on after its quotes: quote the whole value, or write a space before the comment",
	"a: [#{b}]\n":               `1:5: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	"a: [b, #{c}]\n":            `1:8: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	"a: {b: #{c}}\n":            `1:8: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	"a: [b, #{c}]\nd: e\n":      `1:8: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	"a: [b:#{c}, d]\n":          `1:7: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	"a: [b, c #{d}]\n":          `1:10: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	"a: {b: c #{d}}\n":          `1:10: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	"a: [\"b #{c}\", d #{e}]\n": `1:17: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	"a: [it's:#{b}, c]\n":       `1:10: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	"a: [#{b[\"c\"]}]\n":        `1:5: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	"a: [b:#{ {c: d} }]\n":      `1:7: a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`,
	"a: “b: c”\n":               `1:6: a value with a colon and a space needs quotes: a: "“b: c”"`,
	"a: ‘b: c’ # d\n":           `1:6: a value with a colon and a space needs quotes: a: "‘b: c’ # d"`,
	"? [a]: b: c\n":             `1:9: a value with a colon and a space needs quotes: "? [a]: b: c"`,
	"a: [,]\n":                  `1:5: a value is missing here, or a comma is too many`,
	"a: [b,,c]\n":               `1:7: a value is missing here, or a comma is too many`,
	"a: {,}\n":                  `1:5: a value is missing here, or a comma is too many`,
	"---\na: b\n---\nc: d\n":    `3:1: a second document: remove the --- and put all rules into one list`,
	"a: b\n...\nc: d\n":         `3:1: a second document: remove the --- and put all rules into one list`,
	"a: b\n--- c\n":             `2:1: a second document: remove the --- and put all rules into one list`,
	"%YAML 3.0\n---\na: b\n":    `1:1: not YAML: found incompatible YAML document`,
	"%FOO\na: b\n":              `1:1: a value that begins with % needs quotes: "%FOO"`,
	"a: b\u00a0: c: d\n":        `1:6: a value with a colon and a space needs quotes: a: "b\u00a0: c: d"`,
	"a: \"\\u12\"\n":            `1:7: not YAML: while scanning a quoted scalar: did not find expected hexadecimal number`,
	"a: \"\\xZZ\"\n":            `1:7: not YAML: while scanning a quoted scalar: did not find expected hexadecimal number`,
}

// Every common mistake has a separate message. Only rare mistakes are reported with the messages of the
// parser.
func TestParse_NotYAML(t *testing.T) {
	t.Parallel()
	for text, want := range syntaxErrors {
		doc, problems := parsed(text)
		if doc != nil || len(*problems) != 1 || (*problems)[0] != want {
			t.Errorf("%q: got %q, want %q", text, *problems, want)
		}
	}
}

// Parse accepts texts that look like mistakes but are valid YAML. Reading their values reports the mistakes.
func TestParse_OddYAML(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "# b\n", "---\n", "a", "rules\n", "a:\n  - b\n   - c\n", "a: [“b”, “c: d”]\n", "? a\n", ": a: b\n", "a: !!x!y z\n", "\ufeffa: b\n", "a: b\r\nc: d\r\n",
		"a: [\n  b,\n  c #{d}, e\n]\n", "{\"a\": [1, null]}",
	} {
		if doc, problems := parsed(text); doc == nil || doc.Root == nil || len(*problems) > 0 {
			t.Errorf("%q: got %q", text, *problems)
		}
	}
}

func TestParse_Empty(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n\n", "# a\n", "---\n", "\ufeff", "~", "null\n"} {
		doc, problems := parsed(text)
		if doc == nil || len(*problems) > 0 || doc.Root.Kind != yaml.ScalarNode || doc.Root.Tag != "!!null" {
			t.Errorf("%q: got %+v, %q", text, doc, *problems)
		}
	}
}

// Columns count characters, and lines end as in an editor.
func TestParse_Places(t *testing.T) {
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

// A mistake in a very long line is reported, but no message shows the line.
func TestParse_LongLine(t *testing.T) {
	t.Parallel()
	rest := strings.Repeat("b", 5000)
	for _, text := range []string{"a: b: " + rest, "a: @" + rest, "a: [#{" + rest + "}]", "a: 'b' " + rest} {
		doc, problems := parsed(text)
		if doc != nil || len(*problems) != 1 || len((*problems)[0]) > 200 {
			t.Errorf("%.20s…: got %q", text, *problems)
		}
	}
	doc, problems := parsed("a: '" + rest + "'")
	if _, ok := doc.Text(firstValue(t, doc), strictyaml.Form{Long: true}); !ok {
		t.Errorf("got %q", *problems)
	}
}
