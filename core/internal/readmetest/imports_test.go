package readmetest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Pages other than README show fragments. Each page says once what they import, so that a reader need
// not guess which package is meant.
func TestReadme_PagesSayWhatTheirCodeImports(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		if page == "README.md" {
			continue // its first block is a whole file, and it links to the package comments
		}
		var code strings.Builder
		for _, b := range blocks(t, "go", page) {
			code.WriteString(b.code)
		}
		for _, name := range slices.Sorted(maps.Keys(known)) {
			path := known[name]
			isStandard := !strings.Contains(path, ".")
			if !isStandard && mentions(code.String(), name) && !strings.Contains(code.String(), `"`+path+`"`) {
				t.Errorf("%s does not say that its code imports %s", page, path)
			}
		}
	}
}
