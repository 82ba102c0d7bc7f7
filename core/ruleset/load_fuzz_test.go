package ruleset_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/interlock-go/interlock/core/ruleset"
)

// hidden reports a character that moves the cursor, or changes what a terminal shows.
func hidden(r rune) bool { return unicode.IsControl(r) && r != '\n' || r == '\u202e' }

// FuzzLoad: whatever a file contains, there is a set, or an InvalidError whose
// problems say where they are, in visible characters; never a panic.
func FuzzLoad(f *testing.F) {
	for _, folder := range []string{"valid", "invalid"} {
		paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
		if err != nil || len(paths) == 0 {
			f.Fatalf("no samples: %v", err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte(`{"\e[31m": 1, "\u202e": 1, "\x7f": 1, "\x7f": 1, profiles: {"\e": {"\e": 1}, default: 1, "\u202e": {"\e": 1}}, ` +
		`rules: [{http: "/\e", "\e": 1, status: {busy: {"\e": 1}}, profile: "\u202e"}]}`))
	f.Add([]byte("name: \t%"))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := ruleset.Load("locks.yaml", text, ruleset.WithService("shop-api"))
		if err == nil {
			if set == nil {
				t.Error("neither a set nor an error")
			}
			return
		}
		invalid, ok := errors.AsType[*ruleset.InvalidError](err)
		if !ok || set != nil || len(invalid.Problems) == 0 {
			t.Fatalf("got %v, %v", set, err)
		}
		line, column := 0, 0
		for _, p := range invalid.Problems {
			if p.Message == "" || p.Source.File != "locks.yaml" || p.Source.Line < 1 || p.Source.Column < 1 {
				t.Errorf("no place or no message: %+v", p)
			}
			if strings.ContainsFunc(p.Error(), hidden) {
				t.Errorf("not fit for a terminal: %q", p.Error())
			}
			if p.Source.Line < line || p.Source.Line == line && p.Source.Column < column {
				t.Errorf("not in the order of the lines: %v", err)
			}
			line, column = p.Source.Line, p.Source.Column
		}
	})
}
