package aspect

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

// claims records which registries apply the rules of one set, so that rules which none applies are not silent, and
// endpoints to which two apply them are not either.
type claims struct {
	told atomic.Bool // unclaimed was called

	mu       sync.Mutex
	prefixes []ruleset.Endpoint // the transport and the prefix of each registry; see [Adapter].Prefix
	guarded  map[guardedBy]any  // the registry that guards an endpoint
}

// guardedBy is an endpoint with the client whose locks its calls take.
type guardedBy struct {
	locks    *core.Client
	endpoint ruleset.Endpoint
}

type claimsKey struct{}

// claimsOf returns the claims of a set.
func claimsOf(set *ruleset.Set) *claims {
	shared := set.Shared(claimsKey{}, func() any { return &claims{guarded: map[guardedBy]any{}} })
	return shared.(*claims) //nolint:errcheck,forcetypeassert // the only value under this key
}

// claim records that a registry applies the rules for names with a prefix.
func (c *claims) claim(prefix ruleset.Endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prefixes = append(c.prefixes, prefix)
}

// guard records that a registry guards an endpoint. It returns false if another registry does.
func (c *claims) guard(at guardedBy, registry any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, known := c.guarded[at]; known {
		return other == registry
	}
	c.guarded[at] = registry
	return true
}

// unclaimed returns a problem for each transport with rules of the set that no registry applies. Only the first call
// returns problems.
func (c *claims) unclaimed(set *ruleset.Set) (problems []*ruleset.Problem) {
	if c.told.Load() || c.told.Swap(true) || set.Settings().Unmatched == ruleset.SeverityIgnore {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rules := map[ruleset.Transport][]*ruleset.Resolved{}
	for _, r := range set.Rules() {
		if !r.None && !c.isClaimed(r.Endpoint) {
			rules[r.Endpoint.Transport] = append(rules[r.Endpoint.Transport], r)
		}
	}
	for _, t := range []ruleset.Transport{ruleset.TransportHTTP, ruleset.TransportGRPC, ruleset.TransportFunc} {
		if len(rules[t]) > 0 {
			problems = append(problems, rules[t][0].Problem("endpoint", unclaimedMessage(t, len(rules[t])-1)))
		}
	}
	return problems
}

func (c *claims) isClaimed(e ruleset.Endpoint) bool {
	for _, p := range c.prefixes {
		if p.Transport == e.Transport && reaches(e.Path, p.Path) {
			return true
		}
	}
	return false
}

// unclaimedMessage returns the message for a rule that no registry applies, and for more of its transport.
func unclaimedMessage(t ruleset.Transport, more int) string {
	others, to := "", "ginlock's Middleware or httplock.WithSet"
	switch t {
	case ruleset.TransportGRPC:
		to = "grpclock.WithSet or connectlock.WithSet"
	case ruleset.TransportFunc:
		to = "aspect.WithSet, or to the adapter for the name"
	}
	if more > 0 {
		others = fmt.Sprintf(" (and %d more for %s)", more, t)
	}
	return fmt.Sprintf("no guard of this program has the rule%s, so it locks nothing: give the set to %s; if another program has the rule, write services", others, to)
}
