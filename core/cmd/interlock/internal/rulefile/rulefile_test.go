package rulefile_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/rulefile"
	"github.com/interlock-go/interlock/core/ruleset"
)

const text = `dry_run: true
profiles:
  default: {wait_time: 5s}
  reports: {wait_time: 1s}
rules:
  - http: POST /a
    services: [shop, mail]
    profile: reports
  - http: POST /b
    services:
      - mail
`

func TestParse(t *testing.T) {
	t.Parallel()
	at := func(line, column int) ruleset.Source {
		return ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: line, Column: column}
	}
	f := rulefile.Parse("locks.yaml", []byte("\ufeff"+text))
	if want := map[string]ruleset.Source{"reports": at(4, 3)}; !maps.Equal(f.Profiles, want) || !slices.Equal(f.Uses, []string{"reports"}) {
		t.Errorf("got the profiles %v and their uses %q, want %v", f.Profiles, f.Uses, want)
	}
	if !slices.Equal(f.Services, []string{"shop", "mail"}) || f.ServicesAt != at(7, 16) {
		t.Errorf("got the services %q at %v", f.Services, f.ServicesAt)
	}
}

// The loader reports duplicate names. Parse still reads the other names.
func TestParse_DuplicateNames(t *testing.T) {
	t.Parallel()
	text := "rules:\n  - services: [shop]\n    key: a\n" + strings.Repeat("    key: b\n", 50_000) + "  - {profile: a, services: [mail], services: [post]}\n"
	f := rulefile.Parse("locks.yaml", []byte(text))
	if got := f.Services; !slices.Contains(got, "shop") || !slices.Contains(got, "mail") && !slices.Contains(got, "post") {
		t.Errorf("got the services %q", got)
	}
}

// Parse finds no names in a text that is not a rule file. The loader reports such a text.
func TestParse_NotARuleFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "#", "text", "[1, 2]", "rules", "rules:", "rules: 1", "rules: {a: b}", "rules: [1, [2], {services: 1}]",
		"profiles: 1", "profiles: [a]", "a: [", "\x00", "a: &a {b: *a}", "---\n---\n",
	} {
		f := rulefile.Parse("locks.yaml", []byte(text))
		if len(f.Profiles)+len(f.Uses)+len(f.Services) > 0 || string(f.Text) != text || f.Name != "locks.yaml" {
			t.Errorf("%q: got %+v", text, f)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, name string }{{path, path}, {rulefile.Stdin, "stdin"}} {
		f, err := rulefile.Read(c.path, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if f.Name != c.name || string(f.Text) != text || f.ServicesAt.File != c.name {
			t.Errorf("%s: got %+v", c.path, f)
		}
	}
}

// Read stops after the size that the loader refuses.
func TestRead_EndlessFile(t *testing.T) {
	t.Parallel()
	f, err := rulefile.Read(rulefile.Stdin, strings.NewReader(strings.Repeat("#", 2*ruleset.MaxFileSize)))
	if err != nil || len(f.Text) != ruleset.MaxFileSize+1 {
		t.Errorf("got %d bytes, error %v, want one more than %d", len(f.Text), err, ruleset.MaxFileSize)
	}
}

func TestRead_Fails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := rulefile.Read(rulefile.Stdin, iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if _, err := rulefile.Read(filepath.Join(t.TempDir(), "no.yaml"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want %v", err, os.ErrNotExist)
	}
}
