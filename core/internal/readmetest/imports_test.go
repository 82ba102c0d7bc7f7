package readmetest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Pages other than README show fragments of code. Each page lists the imports of its fragments once, so that
// readers need not guess the packages.
func TestReadme_PagesListImports(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		if page == "README.md" {
			continue // it has a whole file, and links to the package comments
		}
		var code strings.Builder
		for _, b := range blocks(t, "go", page) {
			code.WriteString(b.code)
		}
		for _, name := range slices.Sorted(maps.Keys(known)) {
			path := known[name]
			isStandard := !strings.Contains(path, ".")
			if !isStandard && mentions(code.String(), name) && !strings.Contains(code.String(), `"`+path+`"`) {
				t.Errorf("%s does not list the import %s of its code", page, path)
			}
		}
	}
}
