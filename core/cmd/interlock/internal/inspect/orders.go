package inspect

import (
	"fmt"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
)

// orders are the pairs of key templates of which an endpoint takes the first while
// it waits for the second. Two endpoints that take a pair in opposite orders can
// wait for each other.
type orders map[pair]taken

type pair struct{ first, second string }

// taken is where a pair was found.
type taken struct {
	endpoint ruleset.Endpoint
	rule     *ruleset.Resolved // that waits
}

// add notes the pairs of a place, and reports those that another has the other way
// round.
func (o orders) add(s *site, found *findings) {
	for n, second := range s.rules {
		for _, first := range s.rules[:n] {
			if locks(first) && locks(second) && waits(second) {
				o.nested(s.endpoint, first, second, found)
			}
		}
	}
}

func locks(r *ruleset.Resolved) bool { return !r.Disabled && !r.DryRun && !r.None }

func waits(r *ruleset.Resolved) bool { return r.WaitTime != ruleset.NoWait }

func (o orders) nested(e ruleset.Endpoint, first, second *ruleset.Resolved, found *findings) {
	for _, outer := range first.Templates() {
		for _, inner := range second.Templates() {
			p := pair{first.Prefix + outer, second.Prefix + inner}
			if p.first == p.second {
				continue
			}
			if _, known := o[p]; !known {
				o[p] = taken{e, second}
			}
			if other, opposite := o[pair{p.second, p.first}]; opposite && other.endpoint != e {
				found.addAt(e, report.Warning, second.Problem(keyField(second), fmt.Sprintf(
					"taken after %q, and %s takes them the other way round (%s): two requests can wait for each other until the wait time is over: write the rules in one order",
					p.first, other.endpoint, other.rule.Source(keyField(other.rule)))))
			}
		}
	}
}
