package readmetest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notASlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestReadme_Links checks the links of all Markdown files to files, folders and headings of the repository.
func TestReadme_Links(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(root, "examples", "*", "*.md"))
	if err != nil || len(folders) < 8 {
		t.Fatalf("%d pages, %v", len(folders), err)
	}
	papers, err := filepath.Glob(filepath.Join(root, ".github", "*.md"))
	if err != nil || len(papers) < 3 {
		t.Fatalf("%d papers, %v", len(papers), err)
	}
	files := slices.Concat(folders, papers, []string{filepath.Join(root, start), filepath.Join(root, "examples", "README.md")})
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(fencedBlock.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := file
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(file), filepath.FromSlash(m[1]))
			}
			wantTarget(t, file, target, m[2])
		}
	}
}

// wantTarget requires that the file or folder exists and, if the link has an anchor, that the file has a
// heading for it.
func wantTarget(t *testing.T, file, target, anchor string) {
	t.Helper()
	if anchor == "" {
		if _, err := os.Stat(target); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		return
	}
	text, err := os.ReadFile(target)
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return
	}
	for _, m := range heading.FindAllStringSubmatch(fencedBlock.ReplaceAllString(string(text), ""), -1) {
		if slug := notASlug.ReplaceAllString(strings.ToLower(m[1]), ""); strings.ReplaceAll(slug, " ", "-") == anchor {
			return
		}
	}
	t.Errorf("%s: %s has no heading for #%s", file, target, anchor)
}
