package readmetest_test

import (
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// migration gives the text of examples/README.md.
func migration(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "examples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var fencedBlock = regexp.MustCompile("(?ms)^(?:<!-- given: ([^\n]*) -->\n)?```(go|yaml)\n(.*?)^```$")

// migrationBlocks gives the fencedBlock blocks of a language.
func migrationBlocks(t *testing.T, language string) []block {
	t.Helper()
	text := migration(t)
	var found []block
	for _, m := range fencedBlock.FindAllStringSubmatchIndex(text, -1) {
		if text[m[4]:m[5]] != language {
			continue
		}
		b := block{line: 1 + strings.Count(text[:m[6]], "\n"), code: text[m[6]:m[7]]}
		if m[2] >= 0 {
			b.given = text[m[2]:m[3]]
		}
		found = append(found, b)
	}
	if want := strings.Count(text, "```"+language+"\n"); len(found) != want || want == 0 {
		t.Fatalf("examples/README.md: got %d of %d %s blocks", len(found), want, language)
	}
	return found
}

// migrationRows gives the rows of the first table under a heading.
func migrationRows(t *testing.T, heading string) [][]string {
	t.Helper()
	_, text, found := strings.Cut(migration(t), "# "+heading+"\n")
	if !found {
		t.Fatalf("examples/README.md has no heading %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	var table [][]string
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "|"):
			table = append(table, cells(strings.TrimSpace(line)))
		case len(table) > 2:
			return table[2:]
		}
	}
	if len(table) < 3 {
		t.Fatalf("examples/README.md has no table under %q", heading)
	}
	return table[2:]
}

func TestMigration_GoBlocks(t *testing.T) {
	t.Parallel()
	pkgs := load(t)
	for _, b := range migrationBlocks(t, "go") {
		t.Run(fmt.Sprintf("examples line %d", b.line), func(t *testing.T) {
			t.Parallel()
			pkgs.check(t, b)
			if formatted, err := format.Source([]byte(b.code)); err != nil || string(formatted) != b.code {
				t.Errorf("gofmt makes this of it: %v\n%s", err, formatted)
			}
		})
	}
}

func TestMigration_NamesExist(t *testing.T) {
	t.Parallel()
	pkgs := load(t)
	for _, code := range inlineCode.FindAllString(migration(t), -1) {
		for _, m := range qualified.FindAllStringSubmatch(code, -1) {
			if _, is := known[m[1]]; is && !hasName(pkgs.named(t, m[1]), m[2], m[3]) {
				t.Errorf("examples/README.md: there is no %s", m[0])
			}
		}
	}
}

// TestMigration_YAMLSaysWhatGoSays loads each YAML block and looks for its key and its
// condition in the Go block before it.
func TestMigration_YAMLSaysWhatGoSays(t *testing.T) {
	t.Parallel()
	code, text := migrationBlocks(t, "go"), migrationBlocks(t, "yaml")
	if len(code) != len(text) {
		t.Fatalf("got %d Go blocks and %d YAML blocks, want pairs", len(code), len(text))
	}
	for i, b := range text {
		set, err := ruleset.Load("examples/README.md", []byte(b.code))
		if err != nil || set.Len() != 1 {
			t.Errorf("line %d: %d rules, %v", b.line, set.Len(), err)
			continue
		}
		rule := set.Rules()[0]
		for _, want := range append(rule.Templates(), rule.When) {
			if !strings.Contains(code[i].code, want) {
				t.Errorf("line %d: the Go block before it has no %s", b.line, want)
			}
		}
		same(t, b, code[i], "on_busy", "OnBusy", string(rule.OnBusy) != "" && rule.OnBusy != failpolicy.Error)
		same(t, b, code[i], "wait_time", fmt.Sprintf("%d * time.Second", rule.WaitTime/time.Second), strings.Contains(b.code, "wait_time"))
		same(t, b, code[i], "lease_time", fmt.Sprintf("%d * time.Second", rule.LeaseTime/time.Second), strings.Contains(b.code, "lease_time"))
		same(t, b, code[i], "key_format", "ruleset.Strict", rule.KeyFormat == ruleset.Strict)
	}
}

// same wants a field of a YAML block in the Go block, if it is set, and there only then.
func same(t *testing.T, text, code block, field, inGo string, isSet bool) {
	t.Helper()
	if strings.Contains(text.code, field+":") != isSet || strings.Contains(code.code, inGo) != isSet {
		t.Errorf("line %d: %s and %s do not say the same", text.line, field, inGo)
	}
}
