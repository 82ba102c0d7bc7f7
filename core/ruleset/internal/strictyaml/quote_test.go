package strictyaml_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

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

// FuzzQuote: YAML reads the text that was quoted, behind a name and in a list.
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

// problemPlace is what precedes a message.
var problemPlace = regexp.MustCompile(`^\d+:\d+: (?:a: )?`)

// suggested is the line that a problem tells to write.
func suggested(t *testing.T, text, problem string) string {
	t.Helper()
	_, line, found := strings.Cut(problemPlace.ReplaceAllString(problem, ""), ": a: ")
	if !found {
		t.Fatalf("%q: no line is told in %s", text, problem)
	}
	return "a: " + line
}

// What is told to be written is YAML, and no mistake any more.
func TestDoc_WhatIsToldToBeWrittenIsAccepted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // of one line, with what they mean
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
			doc.Text(onlyValue(t, doc), strictyaml.Form{})
		}
		if len(*problems) != 1 {
			t.Errorf("%q: got %q, want one problem", text, *problems)
			continue
		}
		line := suggested(t, text, (*problems)[0])
		again, more := parsed(line + "\n")
		if again == nil {
			t.Errorf("%q: %q is told, which is followed by %q", text, line, *more)
			continue
		}
		got, ok := again.Text(onlyValue(t, again), strictyaml.Form{})
		if again.ReportComments(); !ok || len(*more) > 0 || got != want {
			t.Errorf("%q: %q is told, which is %q, %q; want %q", text, line, got, *more, want)
		}
	}
}
