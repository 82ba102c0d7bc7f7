package board

import "strings"

// byRule is the label of a rule.
const byRule = "distributed_lock_rule"

// rate is how often a counter grew in a second, summed up by labels. more are matchers
// besides those of the variables.
func rate(metric, by string, more ...string) string {
	return "sum by (" + by + ") (rate(distributed_lock_" + metric + "{" + matchers(more) + "}[$__rate_interval]))"
}

// increase is by how much a counter grew within the step of the panel.
func increase(metric, by string) string {
	return "sum by (" + by + ") (increase(distributed_lock_" + metric + "{RULE}[$__rate_interval]))"
}

func matchers(more []string) string {
	return strings.Join(append([]string{"RULE"}, more...), ", ")
}

// quantile is a quantile of a duration histogram, by labels.
func quantile(q, metric, by string) string {
	if by != "" {
		by = ", " + by
	}
	return "histogram_quantile(" + q + ", sum by (le" + by + ") (rate(distributed_lock_" + metric + "_duration_seconds_bucket{RULE}[$__rate_interval])))"
}

func p99(metric string) string { return quantile("0.99", metric, byRule) }

// leaseLeft is a quantile of the part of the lease that was left, behind a text.
func leaseLeft(q, before string) string {
	return before + "histogram_quantile(" + q + ", sum by (le, distributed_lock_rule) (rate(distributed_lock_lease_remaining_ratio_bucket{RULE}[$__rate_interval])))"
}

// filled writes the variables of the dashboard into a query: RULE selects service, pod and
// rule, POD only service and pod.
func filled(expr string) string {
	const pod = `job=~"$job", instance=~"$instance"`
	return strings.NewReplacer(
		"{RULE", "{"+pod+`, distributed_lock_rule=~"$rule"`,
		"{POD", "{"+pod,
	).Replace(expr)
}

// Exprs are the queries of a panel as they stand in the dashboard, with Grafana's variables.
func (p *Panel) Exprs() (exprs []string) {
	for _, q := range p.Queries {
		exprs = append(exprs, filled(q.Expr))
	}
	return exprs
}
