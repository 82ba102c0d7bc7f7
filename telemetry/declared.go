package telemetry

import (
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// site is the identity of a rule: the same name may be declared at several endpoints.
type site struct {
	endpoint ruleset.Endpoint
	rule     string
}

// declared is what gauges show of a rule in force.
type declared struct {
	*rule

	info aspect.RuleInfo
	new  bool // its series have not begun
}

// remember notes a rule; one that is announced again replaces itself.
func (t *Telemetry) remember(r *aspect.RuleInfo, computed *rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sites[site{endpoint: r.Endpoint, rule: r.Rule}] = declared{rule: computed, info: *r, new: true}
}

// forget is for a rule that is in force no more.
func (t *Telemetry) forget(r *aspect.RuleInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sites, site{endpoint: r.Endpoint, rule: r.Rule})
}

// collectRules observes the gauges of rules in force. Of rules that share their labels the
// shortest times are shown: those that are the first to be too short.
func (t *Telemetry) collectRules(o metric.Observer) {
	states := map[string]int64{stateEnabled: 0, stateDisabled: 0, stateDryRun: 0}
	waits, leases := shortest{}, shortest{}
	t.mu.Lock()
	for _, d := range t.sites {
		switch {
		case d.info.Disabled:
			states[stateDisabled]++
		case d.info.DryRun:
			states[stateDryRun]++
		default:
			states[stateEnabled]++
		}
		waits.add(d.rule, d.info.WaitTime)
		leases.add(d.rule, d.info.LeaseTime)
	}
	t.mu.Unlock()
	for state, n := range states {
		o.ObserveInt64(t.inst.rules, n, metric.WithAttributes(attrState.String(state)))
	}
	waits.observe(o, t.inst.waitTime)
	leases.observe(o, t.inst.leaseTime)
}

// shortest has the shortest time of each rule that has one: not of a wait that is none or has no
// end, and not of a lease that is renewed.
type shortest map[*rule]time.Duration

func (s shortest) add(r *rule, d time.Duration) {
	if known, ok := s[r]; d > 0 && (!ok || d < known) {
		s[r] = d
	}
}

func (s shortest) observe(o metric.Observer, gauge metric.Float64Observable) {
	for r, d := range s {
		o.ObserveFloat64(gauge, d.Seconds(), r.observe...)
	}
}
