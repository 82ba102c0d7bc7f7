package strictyaml_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// Parse rejects a text that is not YAML or exceeds a limit. It reports that problem alone, with its place unless the whole
// text is too large.
func TestParse_NotText(t *testing.T) {
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
		strings.Repeat("\n", 4<<20) + "a": "larger than 4 MiB: give each program its own rule file",
		"[" + strings.Repeat("a,", 300_000) + "]": "more than 300000 lines and values: give each program its own rule file",
		strings.Repeat("a\n", 300_001):            "more than 300000 lines and values: give each program its own rule file",
		strings.Repeat("[", 20_000):               "1:10001: nested too deeply: a rule file has a few levels",
	} {
		doc, problems := parsed(text)
		if doc != nil || len(*problems) != 1 || (*problems)[0] != want {
			t.Errorf("%.40q: got %q, want %q", text, *problems, want)
		}
	}
}

// Empty lines and comments do not count as values.
func TestParse_ManyComments(t *testing.T) {
	t.Parallel()
	text := "a: b\n" + strings.Repeat("# c\n", 500_000) + strings.Repeat("\n", 500_000)
	if doc, problems := parsed(text); doc == nil || len(*problems) > 0 {
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
	var reported strictyaml.Problem
	doc := strictyaml.Parse([]byte("a: b"), func(p strictyaml.Problem) { reported = p })
	doc.Reportf(doc.Root, "a", "%s", long("b", 5000))
	if len(reported.Message) > strictyaml.MaxWord+len("…") || reported.Line != 1 || reported.Column != 1 || reported.Field != "a" {
		t.Errorf("got %d:%d: %s, %d bytes", reported.Line, reported.Column, reported.Field, len(reported.Message))
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":              `""`,
		"a b":           `"a b"`,
		"it's":          `"it's"`,
		`say "a"`:       `'say "a"'`,
		`it's "a"`:      `'it''s "a"'`,
		`C:\dir`:        `'C:\dir'`,
		"a\nb":          `"a\nb"`,
		"a\t\"b\"":      `"a\t\"b\""`,
		"#{path.id}":    `"#{path.id}"`,
		`#{q["a"]}`:     `'#{q["a"]}'`,
		"ключ 𝄞":        `"ключ 𝄞"`,
		"\x7f":          `"\x7f"`,
		"null":          `"null"`,
		"a: b # c, [d]": `"a: b # c, [d]"`,
	} {
		if got := strictyaml.Quote(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// FuzzQuote checks that the YAML parser returns a quoted text unchanged as an item of a list.
func FuzzQuote(f *testing.F) {
	for _, text := range []string{"", "a", "it's", `"`, `\`, "a\nb", "\x00", "#{x}", "\u2028", "\ufeff", "\u0085", " a ", "\r\n", "'\n\"", "\x7f\x80", "\"\uffff", "\"\u2028"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		var got struct{ A []string }
		if err := yaml.Unmarshal([]byte("a: ["+strictyaml.Quote(text)+"]\n"), &got); err != nil || len(got.A) != 1 || got.A[0] != text {
			t.Errorf("%q: got %q, %v from %s", text, got.A, err, strictyaml.Quote(text))
		}
	})
}
