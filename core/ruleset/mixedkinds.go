package ruleset

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// MixedKinds reports rules that take one key as locks of different kinds: where two of them
// met, the second call would fail. Rules that state their kind come first, and each is
// compared with those that were in order so far: one that leaves its kind to a default is told
// of one that states it. Each is reported once, in the order of the rules. It is for rules of
// one lock client with all their layers, such as all those that an adapter runs; a set judges
// its own.
//
// Read and write locks are one kind here, and semaphores of two sizes are two. Also reported
// is a rule that a call cannot get past, for the rule before it at the same endpoint: one
// that writes what that one reads, one that takes a second permit of a semaphore, and one that
// wants a token of a lock which that one takes without.
//
// It reports what is certain from the texts: keys are compared letter by letter, with their
// prefix, within one transport. Nothing is said of rules with two conditions, which may
// share no call, of a key by which two endpoints differ (route, method), and of a rule that
// is switched off.
func MixedKinds(rules []*Resolved) []*Problem { return mixedKinds(rules, false) }

// mixedKinds is MixedKinds for rules of which lower layers may bring more if open is true.
func mixedKinds(rules []*Resolved, open bool) []*Problem {
	rules = distinct(rules)
	found := map[*Resolved]*Problem{}
	known := map[keyAt][]*Resolved{}
	for _, r := range kindStatedFirst(rules) {
		if p := r.mixedKind(known); p != nil {
			found[r] = p
			continue
		}
		for _, l := range r.locks() {
			k := r.anywhere(l.key)
			known[k] = append(known[k], r)
		}
	}
	inner := stuck(rules, open)
	var problems []*Problem
	for _, r := range rules {
		if p := cmp.Or(found[r], inner[r]); p != nil {
			problems = append(problems, p)
		}
	}
	return problems
}

// distinct are the rules without those that come again: one with a wildcard may be listed for
// each of its methods.
func distinct(rules []*Resolved) []*Resolved {
	seen := map[*Resolved]bool{}
	return slices.DeleteFunc(slices.Clone(rules), func(r *Resolved) bool {
		again := seen[r]
		seen[r] = true
		return again
	})
}

// keyAt is a key, as it is compiled, of the rules of an endpoint, or of a whole transport.
type keyAt struct {
	place Endpoint
	text  string
}

// anywhere is a key of the rule at all endpoints of its transport.
func (r *Resolved) anywhere(key string) keyAt {
	return keyAt{Endpoint{Transport: r.Endpoint.Transport}, key}
}

// kindStatedFirst sorts the rules that leave their kind to a default behind the others.
func kindStatedFirst(rules []*Resolved) []*Resolved {
	ordered := slices.Clone(rules)
	slices.SortStableFunc(ordered, func(a, b *Resolved) int {
		return cmp.Compare(a.kindIsDefault(), b.kindIsDefault())
	})
	return ordered
}

// kindIsDefault is 1 if nothing says which kind the rule has: neither it nor its profile, nor
// that it has several keys, which one kind alone can have.
func (r *Resolved) kindIsDefault() int {
	if r.Source("kind").Layer > LayerDefault || len(r.Templates()) > 1 {
		return 0
	}
	return 1
}

// mixes reports whether calls of the two rules meet on the key, which both take, with
// different kinds.
func (r *Resolved) mixes(other *Resolved, key string) bool {
	same := r.Kind.family() == other.Kind.family() && (r.Kind != Semaphore || r.Permits == other.Permits)
	return !same && r.meets(other) && (r.Endpoint == other.Endpoint || !namesEndpoint.MatchString(key))
}

// meets reports whether the conditions of the two rules are both met in some call.
func (r *Resolved) meets(other *Resolved) bool {
	return r.When == "" || other.When == "" || r.When == other.When
}

// namesEndpoint finds an expression with a variable that says where a call came in.
var namesEndpoint = regexp.MustCompile(`#\{.*\b(?:route|method)\b`)

// mixedKind is the problem with the first key that a known rule takes as another kind, nil if
// none does.
func (r *Resolved) mixedKind(known map[keyAt][]*Resolved) *Problem {
	for _, l := range r.locks() {
		for _, other := range known[r.anywhere(l.key)] {
			if other.mixes(r, l.key) {
				return r.otherKind(other, l.key)
			}
		}
	}
	return nil
}

// otherKind says what to do about a key that another rule takes as another kind, or about a
// semaphore to which it gives another size.
func (r *Resolved) otherKind(other *Resolved, key string) *Problem {
	if r.Kind == other.Kind {
		return r.Problem("permits", fmt.Sprintf("%d of %q, which has %d for %s: one semaphore has one size: write %s, or another key",
			r.Permits, key, other.Permits, other.called(), r.placeOf("permits").example("permits", strconv.Itoa(other.Permits))))
	}
	same := r.placeOf("kind").example("kind", string(other.Kind))
	if len(r.Templates()) > 1 && !other.Kind.TakesSeveral() {
		same = r.placeOf("kind").example("kind", string(r.Kind)) + " there"
	}
	return r.Problem("kind", fmt.Sprintf("a %s of %q, which is a %s for %s: one key has one kind: write %s, or another key",
		r.Kind.Noun(), key, other.Kind.Noun(), other.called(), same))
}

// called names the rule and its place in a sentence about another one.
func (r *Resolved) called() string {
	return "the " + r.Problem("", "").subject() + ", declared in " + r.origin.where()
}

// kindKnown are the rules whose kind is in order, and not left to a lower layer.
func (r *resolver) kindKnown(rules []*Resolved) []*Resolved {
	return slices.DeleteFunc(slices.Clone(rules), func(rule *Resolved) bool {
		tooMany := len(rule.Templates()) > 1 && !rule.Kind.TakesSeveral()
		return rule.broken.hasAny("kind", "key", "keys", "prefix", "when", "profile", "disabled", "dry_run", "endpoint") ||
			!rule.Kind.isKnown() || tooMany || rule.Kind == Semaphore && (rule.Permits < 1 || rule.broken.hasAny("permits")) || r.allowPartial && rule.Endpoint.mayHaveLower() && !rule.declared("kind")
	})
}
