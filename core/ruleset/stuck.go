package ruleset

import (
	"fmt"
	"slices"
)

// stuck finds the rules that a call cannot get past, since a rule before them at the same
// endpoint, in whose lock it is by then, has the same key. If open is true, what lower layers
// may bring counts as brought.
func stuck(rules []*Resolved, open bool) map[*Resolved]*Problem {
	found := map[*Resolved]*Problem{}
	before := map[keyAt][]*Resolved{}
	for _, r := range rules {
		for _, l := range r.locks() {
			k := keyAt{r.Endpoint, l.key}
			for i, outer := range before[k] {
				if p := r.inside(entered{before[k][:i], outer, l.key, open}); p != nil && found[r] == nil {
					found[r] = p
				}
			}
			before[k] = append(before[k], r)
		}
	}
	return found
}

// entered is where a call is that comes to a later rule: in the lock of a rule, which others
// before it may have taken already.
type entered struct {
	before []*Resolved
	outer  *Resolved
	key    string
	open   bool // lower layers may bring more
}

// inside is the problem of a rule whose lock is taken inside of an outer one's, nil if it can
// be.
func (r *Resolved) inside(e entered) *Problem {
	outer := e.outer
	switch {
	case r == outer || !r.meets(outer):
		return nil
	case r.Kind == Write && outer.Kind == Read && !e.takenBy(r, func(first *Resolved) bool { return first.Kind == Write }):
		return r.Problem("kind", fmt.Sprintf("a write lock of %q inside of the read lock of %s: a reader cannot become a writer, since another one may want the same: "+
			"put this rule before that one, or write %s there", e.key, outer.called(), r.placeOf("kind").example("kind", "write")))
	case r.Kind == Semaphore && outer.Kind == Semaphore:
		return r.Problem("kind", fmt.Sprintf("a second permit of %q beside that of %s: calls with one permit each would wait for each other: "+
			"remove one of the rules, or write another key", e.key, outer.called()))
	case r.Kind == outer.Kind && r.Token && r.tokenKnown(e.open) && !outer.mayDraw(e.open) &&
		!e.takenBy(r, func(first *Resolved) bool { return first.mayDraw(e.open) }):
		return r.lateToken(outer, e.key)
	default:
		return nil
	}
}

// takenBy reports whether a rule before the outer one had already taken the key in that way,
// in every call that comes to both.
func (e entered) takenBy(r *Resolved, way func(first *Resolved) bool) bool {
	return slices.ContainsFunc(e.before, func(first *Resolved) bool {
		return way(first) && (first.When == "" || first.When == e.outer.When || first.When == r.When)
	})
}

// lateToken says what to do about a token of a lock that the call has without one.
func (r *Resolved) lateToken(outer *Resolved, key string) *Problem {
	advice := fmt.Sprintf("write %s there, too, or remove it here", outer.placeOf("token").example("token", "true"))
	if len(outer.Templates()) > 1 {
		advice = "put this rule before that one, which has several keys and therefore no token, or remove " + r.placeOf("token").spell("token")
	}
	return r.Problem("token", fmt.Sprintf("a token of %q, whose lock the call has by then without one, by %s: who has a lock cannot draw its token later: %s",
		key, outer.called(), advice))
}

// mayDraw reports whether the lock of the rule may have a token.
func (r *Resolved) mayDraw(open bool) bool {
	if len(r.Templates()) > 1 {
		return false
	}
	return r.Kind.HasToken() || r.Token || !r.tokenKnown(open)
}

// tokenKnown reports whether what the rule says of a token is in order, and final.
func (r *Resolved) tokenKnown(open bool) bool {
	return !r.broken.hasAny("token") && (r.declared("token") || !open || !r.Endpoint.mayHaveLower())
}
