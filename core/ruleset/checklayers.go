package ruleset

import (
	"cmp"
	"slices"

	"github.com/interlock-go/interlock/failpolicy"
)

// What belongs together in a rule. What a higher layer makes useless is no mistake: who
// wrote the lower one did not know, and who writes the higher one cannot remove it.

// layerOf is the layer that decides about a field: that of its value, or of the profile
// from which the value comes, or does not come.
func (c *checker) layerOf(field string) Layer {
	layer := c.rule.Source(field).Layer
	if layer < LayerCode {
		return max(layer, c.rule.Source("profile").Layer)
	}
	return layer
}

// isOver reports whether the rule itself sets the field, and no higher layer decided about
// the others after it.
func (c *checker) isOver(field string, others ...string) bool {
	return c.rule.declared(field) && !slices.ContainsFunc(others, func(other string) bool {
		return c.layerOf(other) > c.rule.Source(field).Layer
	})
}

// strategies are the fields with a strategy, in order.
func strategies() []string { return []string{"on_busy", "on_backend", "on_key", "on_overload"} }

func (c *checker) checkFallback() {
	r := c.rule
	policy := r.Policy()
	switch {
	case r.broken.hasAny("fallback") || r.strategyBroken():
	case r.Fallback == "":
		c.checkHandler()
	case !policy.Uses(failpolicy.Fallback) && c.isOver("fallback", strategies()...):
		c.reportf("fallback", "%q is never used: write %s, or remove it", r.Fallback, r.placeOf("fallback").example("on_busy", "fallback"))
	}
}

// checkHandler reports strategies that lack the name of their handler. Where a higher
// layer took another profile, the name went with the one before.
func (c *checker) checkHandler() {
	r := c.rule
	values := []failpolicy.Strategy{r.OnBusy, r.OnBackend, r.OnKey, r.OnOverload}
	for i, field := range strategies() {
		if values[i] != failpolicy.Fallback {
			continue
		}
		if r.declared(field) && r.Source("profile").Layer > r.Source(field).Layer {
			at := r.placeOf("profile")
			c.reportf("profile", "does not name the handler that %s of %s needs: write %s", at.spell(field), r.Source(field).where(), at.example("fallback", `"name"`))
			continue
		}
		c.reportf(field, "the strategy needs the name of a handler: write %s", r.placeOf(field).example("fallback", `"name"`))
	}
}

// strategyBroken reports whether a strategy is unreadable, or may be in a profile
// that is not known.
func (r *Resolved) strategyBroken() bool {
	return r.broken.hasAny(append(strategies(), "profile")...)
}

func (c *checker) checkDebounce() {
	r := c.rule
	if r.Debounce <= 0 {
		return
	}
	if r.WaitTime != NoWait && c.isOver("wait_time", "debounce") {
		at := r.placeOf("wait_time")
		c.reportf("wait_time", "a debounced call never waits: remove %s%s",
			at.spell("wait_time"), cmp.Or(c.cameFrom("debounce", "wait_time"), " or "+at.spell("debounce")))
	}
	if r.LeaseTime != Watchdog && c.isOver("lease_time", "debounce") {
		c.reportf("lease_time", "a debounced handler is held by the watchdog, and the window begins after it: remove %s%s",
			r.placeOf("lease_time").spell("lease_time"), c.cameFrom("debounce", "lease_time"))
	}
	if r.OnBusy == failpolicy.Proceed && c.layerOf("on_busy") >= c.layerOf("debounce") {
		c.reportf("on_busy", "proceeding inside the window undoes %s: write another strategy%s",
			r.placeOf("on_busy").spell("debounce"), cmp.Or(c.cameFrom("debounce", "on_busy"), ", or remove one"))
	}
}

// checkUnused reports what the rest of the rule makes meaningless.
func (c *checker) checkUnused() {
	r := c.rule
	policy := r.Policy()
	if _, used := policy.Replies(); r.Response != "" && !used && !r.strategyBroken() && c.isOver("response", strategies()...) {
		c.reportf("response", "never used: write %s, or remove it", r.placeOf("response").example("on_busy", "null_response"))
	}
	if r.MaxWaiters > 0 {
		c.checkWaiters("max_waiters", "nobody waits under this rule")
	}
	if r.OnOverload != failpolicy.Error {
		c.checkWaiters("on_overload", "nobody waits under this rule, so there is no overload")
	}
}

// checkWaiters reports a field for those who wait where nobody does.
func (c *checker) checkWaiters(field, message string) {
	r := c.rule
	cause := "debounce"
	switch {
	case r.Debounce > 0 && c.isOver(field, "debounce"):
	case r.WaitTime == NoWait && c.isOver(field, "wait_time"):
		cause = "wait_time"
	default:
		return
	}
	c.reportf(field, "%s: remove it%s", message, c.cameFrom(cause, field))
}

// cameFrom says in brackets where a field has its value if that is no line beside the
// other one, in the words of that.
func (c *checker) cameFrom(field, other string) string {
	from := c.rule.Source(field)
	if from.Layer == c.rule.Source(other).Layer {
		return ""
	}
	return " (" + c.rule.placeOf(other).spell(field) + " comes from " + from.where() + ")"
}

// applyDebounce gives a debounced rule what debouncing means: nobody waits, the lock
// lives as long as the handler, and a call inside of the window does not proceed, whatever
// lower layers say.
func (c *checker) applyDebounce() {
	r := c.rule
	if r.Debounce <= 0 {
		return
	}
	if r.OnBusy == failpolicy.Proceed {
		r.OnBusy = failpolicy.Error
		c.replaced("on_busy")
	}
	if r.WaitTime != NoWait && r.declared("wait_time") {
		c.replaced("wait_time")
	}
	if r.LeaseTime != Watchdog && r.declared("lease_time") {
		c.replaced("lease_time")
	}
	r.WaitTime, r.LeaseTime = NoWait, Watchdog
}

// replaced makes the debounce the source of what a lower layer set.
func (c *checker) replaced(field string) {
	c.rule.sources[field] = c.rule.Source("debounce")
}
