package methodcall

import (
	"slices"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// lossOf describes a loss while the handler still runs. Of several rules it is told
// as that of the last one with a lock; the answer to the caller is exact.
func lossOf(point *aspect.Point, cause error) *aspect.RefusedError {
	rule := lastInForce(point.Rules())
	lost := aspect.Outcome{
		Verdict: aspect.VerdictLost, Cause: failpolicy.Lost, Rule: rule, Status: rule.Status.Status(failpolicy.Lost), Reason: cause,
	}
	return lost.Refusal()
}

// lastInForce is the last rule that takes a lock; without one the last of all.
func lastInForce(rules []*ruleset.Resolved) *ruleset.Resolved {
	for _, r := range slices.Backward(rules) {
		if !r.Disabled && !r.DryRun {
			return r
		}
	}
	return rules[len(rules)-1]
}
