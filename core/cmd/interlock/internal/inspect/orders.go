package inspect

import (
	"fmt"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
)

// mostShared is the maximum number of locks of one endpoint that check compares with each other. It counts only locks that
// other endpoints take, too.
const mostShared = 100

// orders holds the locks of endpoints in the order in which calls take them. Two endpoints that take a pair of locks in
// opposite orders can wait for each other.
type orders struct {
	sequences []sequence
	takers    map[string]ruleset.Endpoint // by key template: the endpoint that takes the lock; zero if several endpoints do
	pairs     map[pair]nesting            // the first nesting of each pair
}

// sequence contains the locks of an endpoint in the order in which calls take them.
type sequence struct {
	endpoint ruleset.Endpoint
	locks    []lock
}

// lock is a key template with the rule that takes it.
type lock struct {
	key  string
	rule *ruleset.Resolved
}

// pair consists of the key templates of two locks. An endpoint holds the first lock while it waits for the second.
type pair struct{ first, second string }

// nesting records which endpoint takes a pair of locks.
type nesting struct {
	endpoint ruleset.Endpoint
	rule     *ruleset.Resolved // the rule of the second lock
}

func newOrders() *orders {
	return &orders{takers: map[string]ruleset.Endpoint{}, pairs: map[pair]nesting{}}
}

// add adds the locks of s.
func (o *orders) add(s *site) {
	seq := sequence{endpoint: s.endpoint}
	for _, r := range s.rules {
		if !locks(r) {
			continue
		}
		for _, template := range r.Templates() {
			l := lock{r.Prefix + template, r}
			seq.locks = append(seq.locks, l)
			if e, known := o.takers[l.key]; !known {
				o.takers[l.key] = s.endpoint
			} else if e != s.endpoint {
				o.takers[l.key] = ruleset.Endpoint{}
			}
		}
	}
	o.sequences = append(o.sequences, seq)
}

func locks(r *ruleset.Resolved) bool { return !r.Disabled && !r.DryRun && !r.None }

func waits(r *ruleset.Resolved) bool { return r.WaitTime != ruleset.NoWait }

// check adds a warning for each pair of locks that one endpoint takes in one order and another endpoint in the opposite
// order. It ignores locks that only one endpoint takes.
func (o *orders) check(found *findings) {
	for _, seq := range o.sequences {
		var before []lock
		for _, l := range seq.locks {
			if !o.takers[l.key].IsZero() {
				continue
			}
			if len(before) == mostShared {
				found.add(report.Note, l.rule.Problem(keyField(l.rule), fmt.Sprintf(
					"not checked: whether other endpoints take this lock, and those after it, in another order: only the first %d are compared", mostShared)))
				break
			}
			for _, outer := range before {
				o.nest(seq.endpoint, outer, l, found)
			}
			before = append(before, l)
		}
	}
}

// nest records that the endpoint e waits for the lock inner while it holds the lock outer. It adds a warning if another
// endpoint takes the two locks in the opposite order. It ignores two locks of one rule, because a call takes them
// together. It also ignores an inner lock without a wait time.
func (o *orders) nest(e ruleset.Endpoint, outer, inner lock, found *findings) {
	if outer.rule == inner.rule || outer.key == inner.key || !waits(inner.rule) {
		return
	}
	p := pair{outer.key, inner.key}
	if _, known := o.pairs[p]; !known {
		o.pairs[p] = nesting{e, inner.rule}
	}
	if other, opposite := o.pairs[pair{p.second, p.first}]; opposite && other.endpoint != e {
		found.Warn(e, inner.rule.Problem(keyField(inner.rule), fmt.Sprintf(
			"taken after %q, and %s takes them the other way round (%s): two requests can wait for each other until the wait time has passed: write the rules in one order",
			p.first, other.endpoint, other.rule.Source(keyField(other.rule)))))
	}
}
