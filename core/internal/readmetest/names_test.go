package readmetest_test

import (
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	inlineCode = regexp.MustCompile("`[^`]+`")
	qualified  = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	docLink    = regexp.MustCompile(`\[\*?(?:([a-z]+)\.)?([A-Z]\w*)(?:\.([A-Z]\w*))?\]`)
	bare       = regexp.MustCompile(`^([A-Z]\w*[a-z]\w*)(?:\.([A-Z]\w*))?$`)
)

// TestReadme_NamesExist checks that every exported name in the pages exists, for example core.WithPrefix,
// redis.Options.DB, Hold.Token or OnBusy.
func TestReadme_NamesExist(t *testing.T) {
	t.Parallel()
	pkgs := load(t)
	for _, page := range pages {
		text := fencedBlock.ReplaceAllString(read(t, page), "")
		for _, code := range inlineCode.FindAllString(text, -1) {
			code = strings.Trim(code, "`")
			names := qualified.FindAllStringSubmatch(code, -1)
			pkgs.wantNames(t, page, names)
			for _, m := range names {
				if slices.Contains(values, m[1]) && !pkgs.haveName(t, m[2], "") {
					t.Errorf("%s: no package of this module has the name %s", page, m[0])
				}
			}
			if m := bare.FindStringSubmatch(code); m != nil && page != migrating && !slices.Contains(foreign, m[0]) && !pkgs.haveName(t, m[1], m[2]) {
				t.Errorf("%s: no package has an exported %s", page, m[0])
			}
		}
	}
}

// TestReadme_LinksOfCommentsExist checks that the names in square brackets in package comments exist.
func TestReadme_LinksOfCommentsExist(t *testing.T) {
	t.Parallel()
	pkgs := load(t)
	for _, c := range comments {
		for _, m := range docLink.FindAllStringSubmatch(read(t, c.folder+"/doc.go"), -1) {
			if m[1] == "" {
				m[1] = path.Base(c.folder)
			}
			pkgs.wantNames(t, c.folder+"/doc.go", [][]string{m})
		}
	}
}

// wantNames requires that the names in known packages exist. A match contains the whole text, the package,
// the name and a member of it.
func (p *packages) wantNames(t *testing.T, where string, matches [][]string) {
	t.Helper()
	for _, m := range matches {
		if _, is := known[m[1]]; is && !hasName(p.lookup(t, m[1]), m[2], m[3]) {
			t.Errorf("%s: %s does not exist", where, m[0])
		}
	}
}

// values lists variables in the texts whose methods and fields the texts use.
var values = []string{"guard", "hold", "locks", "locking", "page", "refusal", "refused", "registry", "rules", "srv", "tel"}

// foreign lists words that look like Go names but do not belong to this module.
var foreign = []string{"RLock", "ErrorInfo", "RetryInfo"}

// haveName reports whether a package of this module has the name at its top level. A single word may also be
// a field or a method of one of its types.
func (p *packages) haveName(t *testing.T, name, member string) bool {
	t.Helper()
	for short, path := range known {
		if !strings.HasPrefix(path, module) {
			continue
		}
		pkg := p.lookup(t, short)
		if hasName(pkg, name, member) || member == "" && hasMember(pkg, name) {
			return true
		}
	}
	return false
}

func hasName(pkg *types.Package, name, member string) bool {
	object := pkg.Scope().Lookup(name)
	if object == nil || member == "" {
		return object != nil
	}
	found, _, _ := types.LookupFieldOrMethod(object.Type(), true, pkg, member)
	return found != nil
}

func hasMember(pkg *types.Package, member string) bool {
	scope := pkg.Scope()
	return slices.ContainsFunc(scope.Names(), func(name string) bool {
		_, isType := scope.Lookup(name).(*types.TypeName)
		return isType && hasName(pkg, name, member)
	})
}
