package readmetest_test

import (
	"go/types"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	inlineCode = regexp.MustCompile("`[^`]+`")
	qualified  = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	bare       = regexp.MustCompile(`^([A-Z]\w*[a-z]\w*)(?:\.([A-Z]\w*))?$`)
)

// TestReadme_NamesExist looks up every exported name in the text, such as
// core.WithPrefix, redis.Options.DB, Hold.Token or OnBusy.
func TestReadme_NamesExist(t *testing.T) {
	t.Parallel()
	pkgs := load(t)
	fence := false
	for i, text := range readme(t) {
		if strings.HasPrefix(text, "```") {
			fence = !fence
		}
		if fence {
			continue
		}
		for _, code := range inlineCode.FindAllString(text, -1) {
			code = strings.Trim(code, "`")
			for _, m := range qualified.FindAllStringSubmatch(code, -1) {
				if _, is := known[m[1]]; is && !hasName(pkgs.named(t, m[1]), m[2], m[3]) {
					t.Errorf("README.md:%d: there is no %s", i+1, m[0])
				}
			}
			if m := bare.FindStringSubmatch(code); m != nil && !slices.Contains(foreign, m[0]) && !pkgs.haveName(t, m[1], m[2]) {
				t.Errorf("README.md:%d: no package has an exported %s", i+1, m[0])
			}
		}
	}
}

// foreign are words in the form of a Go name that are none of ours.
var foreign = []string{"RLock", "ErrorInfo", "RetryInfo"}

// haveName tells whether one of our packages has the name, at its top level or, if
// it is a single word, as a field or method of one of its types.
func (p *packages) haveName(t *testing.T, name, member string) bool {
	t.Helper()
	for short, path := range known {
		if !strings.HasPrefix(path, module) {
			continue
		}
		pkg := p.named(t, short)
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
