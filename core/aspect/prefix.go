package aspect

import (
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// claim notes what the names of an adapter begin with, which is the path of an endpoint.
func (a *Aspect) claim(prefix ruleset.Endpoint) {
	if prefix.Path == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.prefixes = append(a.prefixes, prefix)
}

// concerns reports whether the rules of an endpoint are for an adapter with a prefix: whether
// they begin with it, and with no longer one of another.
func (a *Aspect) concerns(prefix string, e ruleset.Endpoint) bool {
	if !strings.HasPrefix(e.Path, prefix) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, other := range a.prefixes {
		if other.Transport == e.Transport && len(other.Path) > len(prefix) && reaches(e.Path, other.Path) {
			return false
		}
	}
	return true
}

// reaches reports whether a path of a rule stands for names with a prefix.
func reaches(path, prefix string) bool {
	above, isWildcard := strings.CutSuffix(path, "*")
	return strings.HasPrefix(path, prefix) || isWildcard && strings.HasPrefix(prefix, above)
}
