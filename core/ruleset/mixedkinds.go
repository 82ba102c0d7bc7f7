package ruleset

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// MixedKinds reports rules that take one key as locks of different kinds, or as semaphores of two
// sizes: where two of them met, the second call would fail, or one of them would let more calls run
// than it says. Rules that state their kind come first, and each is compared with those that were in
// order so far. It is for rules of one lock client with all their layers, such as all those that an
// adapter runs; a set judges its own.
//
// It reports what is certain from the texts: keys are compared letter by letter, with their
// prefix, within one transport; read and write locks are one kind here. Nothing is said of rules with
// two conditions, which may share no call, of a key by which two endpoints differ (route, method), and
// of a rule that is switched off.
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
		if seen[r] { // one with a wildcard may be listed for each of its methods
			continue
		}
		seen[r] = true
		for _, l := range r.locks() {
			at := place{r.Endpoint.Transport, l.key}
			if i := slices.IndexFunc(known[at], func(other *Resolved) bool { return other.mixes(r, l.key) }); i >= 0 {
				problems = append(problems, r.otherKind(known[at][i], l.key))
				break
			}
			known[at] = append(known[at], r)
		}
	}
	return problems
}

// namesEndpoint finds an expression with a variable that says where a call came in.
var namesEndpoint = regexp.MustCompile(`#\{.*\b(?:route|method)\b`)

// mixes reports whether calls of the two rules meet on the key, which both take, with
// different kinds or sizes.
func (r *Resolved) mixes(other *Resolved, key string) bool {
	same := r.Kind.family() == other.Kind.family() && (!r.Kind.Traits().Permits || r.Permits == other.Permits)
	meet := r.When == "" || other.When == "" || r.When == other.When
	return !same && meet && (r.Endpoint == other.Endpoint || !namesEndpoint.MatchString(key))
}

// otherKind says what to do about a key that another rule takes as another kind, or about a
// semaphore to which it gives another size.
func (r *Resolved) otherKind(other *Resolved, key string) *Problem {
	called := "the " + other.Problem("", "").subject() + ", declared in " + other.origin.where()
	if r.Kind == other.Kind {
		return r.Problem("permits", fmt.Sprintf("%d of %q, which has %d for %s: one semaphore has one size: write %s, or another key",
			r.Permits, key, other.Permits, called, r.placeOf("permits").example("permits", strconv.Itoa(other.Permits))))
	}
	same := r.placeOf("kind").example("kind", string(other.Kind))
	if len(r.Templates()) > 1 && !other.Kind.Traits().Several {
		same = r.placeOf("kind").example("kind", string(r.Kind)) + " there"
	}
	return r.Problem("kind", fmt.Sprintf("a %s of %q, which is a %s for %s: one key has one kind: write %s, or another key",
		r.Kind.Traits().Noun, key, other.Kind.Traits().Noun, called, same))
}

// kindKnown are the rules whose kind is in order, and not left to a lower layer.
func (r *resolver) kindKnown(rules []*Resolved) []*Resolved {
	return slices.DeleteFunc(slices.Clone(rules), func(rule *Resolved) bool {
		tooMany := len(rule.Templates()) > 1 && !rule.Kind.Traits().Several
		return rule.broken.hasAny("kind", "key", "keys", "prefix", "when", "profile", "disabled", "dry_run", "endpoint") ||
			!rule.Kind.isKnown() || tooMany || rule.Kind.Traits().Permits && (rule.Permits < 1 || rule.broken.hasAny("permits")) || r.allowPartial && rule.Endpoint.mayHaveLower() && !rule.declared("kind")
	})
}
