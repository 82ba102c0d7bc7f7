package inspect

import (
	"fmt"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
)

// mostShared is the number of locks of one endpoint that are compared with each other. Only locks that other
// endpoints take, too, are counted.
const mostShared = 100

// orders holds the locks of endpoints in the order in which calls take them. Two endpoints that
// take a pair of locks in opposite orders can wait for each other.
type orders struct {
	places []place
	takers map[string]ruleset.Endpoint // by key: the endpoint that takes it; zero if several do
	pairs  map[pair]taken
}

// place is an endpoint with its locks.
type place struct {
	endpoint ruleset.Endpoint
	taken    []lock
}

// lock is a key template with the rule that takes it.
type lock struct {
	key  string
	rule *ruleset.Resolved
}

// pair is two key templates: an endpoint holds the lock of the first while it waits for the lock of the second.
type pair struct{ first, second string }

// taken is the endpoint of a pair.
type taken struct {
	endpoint ruleset.Endpoint
	rule     *ruleset.Resolved // the rule that waits
}

func newOrders() *orders {
	return &orders{takers: map[string]ruleset.Endpoint{}, pairs: map[pair]taken{}}
}

// add adds the locks of a site.
func (o *orders) add(s *site) {
	p := place{endpoint: s.endpoint}
	for _, r := range s.rules {
		if !locks(r) {
			continue
		}
		for _, template := range r.Templates() {
			l := lock{r.Prefix + template, r}
			p.taken = append(p.taken, l)
			if e, known := o.takers[l.key]; !known {
				o.takers[l.key] = s.endpoint
			} else if e != s.endpoint {
				o.takers[l.key] = ruleset.Endpoint{}
			}
		}
	}
	o.places = append(o.places, p)
}

func locks(r *ruleset.Resolved) bool { return !r.Disabled && !r.DryRun && !r.None }

func waits(r *ruleset.Resolved) bool { return r.WaitTime != ruleset.NoWait }

// check reports the pairs that a place takes in the opposite order to an earlier place. Only keys
// that several endpoints take can be in such a pair.
func (o *orders) check(found *findings) {
	for _, p := range o.places {
		var before []lock
		for _, l := range p.taken {
			if !o.takers[l.key].IsZero() {
				continue
			}
			if len(before) == mostShared {
				found.add(report.Note, l.rule.Problem(keyField(l.rule), fmt.Sprintf(
					"not checked: whether other endpoints take this lock, and those after it, in another order: only the first %d are compared", mostShared)))
				break
			}
			for _, outer := range before {
				o.nested(p.endpoint, outer, l, found)
			}
			before = append(before, l)
		}
	}
}

// nested records that an endpoint takes a lock while it holds another one. The locks of one rule are
// taken together and do not count.
func (o *orders) nested(e ruleset.Endpoint, outer, inner lock, found *findings) {
	if outer.rule == inner.rule || outer.key == inner.key || !waits(inner.rule) {
		return
	}
	p := pair{outer.key, inner.key}
	if _, known := o.pairs[p]; !known {
		o.pairs[p] = taken{e, inner.rule}
	}
	if other, opposite := o.pairs[pair{p.second, p.first}]; opposite && other.endpoint != e {
		found.Warn(e, inner.rule.Problem(keyField(inner.rule), fmt.Sprintf(
			"taken after %q, and %s takes them the other way round (%s): two requests can wait for each other until the wait time has passed: write the rules in one order",
			p.first, other.endpoint, other.rule.Source(keyField(other.rule)))))
	}
}
