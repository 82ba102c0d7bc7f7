package ruleset

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// MixedKinds reports rules that take one key as locks of different kinds, or as semaphores of different
// sizes. If calls of two such rules met, the second call would fail, or more calls would run than one of the
// rules permits. MixedKinds compares each rule with the earlier rules that have no such problem. It starts with
// the rules that state their kind. Call it with all rules of one lock client, after all layers are applied: an
// adapter passes all rules that it runs. A set checks its own rules.
//
// MixedKinds reports only certain mistakes. It compares the templates of the keys letter by letter,
// with their prefix, within one transport. Read and write locks count as one kind. It does not report
// two rules with different conditions, because no call may match both. Nor does it report a key that
// differs between two endpoints (route, method), or a rule that is switched off.
func MixedKinds(rules []*Resolved) []*Problem {
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b *Resolved) int {
		return cmp.Compare(min(b.Source("kind").Layer, LayerProfile), min(a.Source("kind").Layer, LayerProfile))
	})
	type place struct {
		transport Transport
		key       string
	}
	known, seen := map[place][]*Resolved{}, map[*Resolved]bool{}
	var problems []*Problem
	for _, r := range rules {
		if seen[r] { // a rule with a wildcard may occur once for each method that it matches
			continue
		}
		seen[r] = true
		for _, l := range r.locks() {
			at := place{r.Endpoint.Transport, l.key}
			if i := slices.IndexFunc(known[at], func(other *Resolved) bool { return mixes(other, r, l.key) }); i >= 0 {
				problems = append(problems, otherKind(r, known[at][i], l.key))
				break
			}
			known[at] = append(known[at], r)
		}
	}
	return problems
}

// namesEndpoint matches an expression with a variable that depends on the endpoint.
var namesEndpoint = regexp.MustCompile(`#\{.*\b(?:route|method)\b`)

// mixes reports whether two rules that both take the key have different kinds or sizes and whether
// their calls can meet.
func mixes(r, other *Resolved, key string) bool {
	same := r.Kind.family() == other.Kind.family() && (!r.Kind.Traits().Permits || r.Permits == other.Permits)
	meet := r.When == "" || other.When == "" || r.When == other.When
	return !same && meet && (r.Endpoint == other.Endpoint || !namesEndpoint.MatchString(key))
}

// otherKind returns the problem that r takes the key of another rule with another kind, or with another
// number of permits.
func otherKind(r, other *Resolved, key string) *Problem {
	called := "the " + other.Problem("", "").subject() + ", declared in " + other.origin.where()
	if r.Kind == other.Kind {
		return r.Problem("permits", fmt.Sprintf("%d of %q, which has %d for %s: a semaphore has one number of permits: write %s, or another key",
			r.Permits, key, other.Permits, called, r.placeOf("permits").example("permits", strconv.Itoa(other.Permits))))
	}
	same := r.placeOf("kind").example("kind", string(other.Kind))
	if len(r.Templates()) > 1 && !other.Kind.Traits().Several {
		same = r.placeOf("kind").example("kind", string(r.Kind)) + " there"
	}
	return r.Problem("kind", fmt.Sprintf("a %s of %q, which is a %s for %s: one key has one kind: write %s, or another key",
		r.Kind.Traits().Noun, key, other.Kind.Traits().Noun, called, same))
}
