package ruleset

import "fmt"

// heldKey is a key that a call has taken when it comes to a later rule of its endpoint.
type heldKey struct {
	at   Endpoint
	text string
}

// stuck finds the rules that a call cannot get past, since a rule before them at the same
// endpoint, in whose lock it is by then, has the same key. What lower layers may bring counts
// as brought.
func stuck(rules []*Resolved, lower layersBelow) map[*Resolved]*Problem {
	found := map[*Resolved]*Problem{}
	before := map[heldKey][]*Resolved{}
	seen := map[*Resolved]bool{} // one with a wildcard is listed for each of its methods
	for _, r := range rules {
		if seen[r] {
			continue
		}
		seen[r] = true
		for _, l := range r.locks() {
			k := heldKey{r.Endpoint, l.key}
			for i := range before[k] {
				if p := r.inside(entered{before[k][:i], before[k][i], l.key, lower}); p != nil && found[r] == nil {
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
	lower  layersBelow
}

// inside is the problem of a rule whose lock is taken inside of an outer one's, nil if it can
// be.
func (r *Resolved) inside(e entered) *Problem {
	outer := e.outer
	c := checker{rule: r}
	c.look("kind")
	switch {
	case r == outer || !r.meets(outer):
		return nil
	case r.Kind == Write && outer.Kind == Read && !e.hadBy(r, func(first *Resolved) bool { return first.Kind == Write }):
		return r.Problem("kind", fmt.Sprintf("a write lock of %q inside of the read lock of %s: a reader cannot become a writer, since another one may want the same: "+
			"put this rule before that one, or write %s there", e.key, outer.called(), example(c.inFile(), "kind", c.spell("write"))))
	case r.Kind == Semaphore && outer.Kind == Semaphore:
		return r.Problem("kind", fmt.Sprintf("a second permit of %q beside that of %s: calls with one permit each would wait for each other: "+
			"remove one of the rules, or write another key", e.key, outer.called()))
	case r.Kind == outer.Kind && e.lower.wantsToken(r) && !e.lower.mayDraw(outer) && !e.hadBy(r, e.lower.mayDraw):
		return r.lateToken(outer, e.key)
	default:
		return nil
	}
}

// hadBy reports whether a rule before the outer one had already taken the key in that way,
// in every call that comes to both.
func (e entered) hadBy(r *Resolved, way func(first *Resolved) bool) bool {
	for _, first := range e.before {
		if way(first) && (first.When == "" || first.When == e.outer.When || first.When == r.When) {
			return true
		}
	}
	return false
}

// lateToken says what to do about a token of a lock that the call has without one.
func (r *Resolved) lateToken(outer *Resolved, key string) *Problem {
	c, there := checker{rule: r}, checker{rule: outer}
	c.look("token")
	there.look("token")
	advice := fmt.Sprintf("write %s there, too, or remove it here", example(there.inFile(), "token", "true"))
	if len(outer.Templates()) > 1 {
		advice = "put this rule before that one, which has several keys and therefore no token, or remove " + c.spell("token")
	}
	return r.Problem("token", fmt.Sprintf("a token of %q, whose lock the call has by then without one, by %s: who has a lock cannot draw its token later: %s",
		key, outer.called(), advice))
}

// layersBelow tells of which rules lower layers may bring what no layer sets so far.
type layersBelow func(*Resolved) bool

// allKnown is for rules with all their layers.
func allKnown(*Resolved) bool { return false }

// wantsToken reports whether it is certain that the rule asks for a token.
func (lower layersBelow) wantsToken(r *Resolved) bool { return r.Token && lower.tokenKnown(r) }

// mayDraw reports whether the lock of the rule may have a token.
func (lower layersBelow) mayDraw(r *Resolved) bool {
	if len(r.Templates()) > 1 {
		return false
	}
	return r.Kind == Fenced || r.Token || !lower.tokenKnown(r)
}

// tokenKnown reports whether what the rule says of a token is in order, and final.
func (lower layersBelow) tokenKnown(r *Resolved) bool {
	return !r.broken.hasAny("token") && (r.declared("token") || !lower(r))
}
