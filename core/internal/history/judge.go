package history

import (
	"cmp"
	"slices"
)

// Judge returns the violations of the promises, in the order of the events.
func Judge(limits Limits, events []Event) []Violation {
	j := newJudge(limits, events)
	for _, rule := range []func(){
		j.exclusion, j.updates, j.reads, j.tokens, j.holders, j.overruns, j.limits, j.judgeRuns, j.judgeForced, j.losses, j.releases,
		j.waits, j.reentries, j.refusals, j.wakeups, j.leftovers, j.ends,
	} {
		rule()
	}
	slices.SortStableFunc(j.violations, func(a, b Violation) int {
		return cmp.Compare(a.Events[0].Begin, b.Events[0].Begin)
	})
	return j.violations
}
