package aspect

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

// environment is the state that all points and registries of one [Aspect] share. It does not depend on them.
type environment struct {
	locks     *core.Client
	observers observers
	resolving []ruleset.Option // profiles for rules in Go
	suspended atomic.Bool      // the kill switch
	told      sync.Map         // the warnings of warnUnlocked, by their texts

	mu       sync.Mutex
	prefixes []ruleset.Endpoint // the prefixes of adapters; see [Adapter].Prefix
}

// warn notifies the observers of warnings.
func (e *environment) warn(problems ...*ruleset.Problem) {
	for _, p := range problems {
		e.observers.observeWarning(p)
	}
}

// claim records the prefix of an adapter. The prefix is the path of an endpoint.
func (e *environment) claim(prefix ruleset.Endpoint) {
	if prefix.Path == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prefixes = append(e.prefixes, prefix)
}

// concerns reports whether the rules of an endpoint belong to an adapter with the given prefix: the path has to begin
// with that prefix, and must not reach a longer prefix of another adapter.
func (e *environment) concerns(prefix string, at ruleset.Endpoint) bool {
	if !strings.HasPrefix(at.Path, prefix) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, other := range e.prefixes {
		if other.Transport == at.Transport && len(other.Path) > len(prefix) && reaches(at.Path, other.Path) {
			return false
		}
	}
	return true
}

// reaches reports whether the path of a rule covers names with a prefix.
func reaches(path, prefix string) bool {
	above, isWildcard := strings.CutSuffix(path, "*")
	return strings.HasPrefix(path, prefix) || isWildcard && strings.HasPrefix(prefix, above)
}
