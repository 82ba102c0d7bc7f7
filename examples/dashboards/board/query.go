package board

import "strings"

// byRule is the label of a rule.
const byRule = "distributed_lock_rule"

// rate returns a query for the rate of a counter per second, summed by labels. more are matchers in addition
// to the matchers of the variables.
func rate(metric, by string, more ...string) string {
	return "sum by (" + by + ") (rate(distributed_lock_" + metric + "{" + matchers(more) + "}[$__rate_interval]))"
}

// increase returns a query for the increase of a counter within the step of the panel, summed by labels.
func increase(metric, by string) string {
	return "sum by (" + by + ") (increase(distributed_lock_" + metric + "{RULE}[$__rate_interval]))"
}

func matchers(more []string) string {
	return strings.Join(append([]string{"RULE"}, more...), ", ")
}

// quantile returns a query for a quantile of a duration histogram, by labels.
func quantile(q, metric, by string) string {
	if by != "" {
		by = ", " + by
	}
	return "histogram_quantile(" + q + ", sum by (le" + by + ") (rate(distributed_lock_" + metric + "_duration_seconds_bucket{RULE}[$__rate_interval])))"
}

func p99(metric string) string { return quantile("0.99", metric, byRule) }

// leaseLeft returns a query for a quantile of the share of the lease that was left. It puts the text
// before in front of the query.
func leaseLeft(q, before string) string {
	return before + "histogram_quantile(" + q + ", sum by (le, distributed_lock_rule) (rate(distributed_lock_lease_remaining_ratio_bucket{RULE}[$__rate_interval])))"
}

// fill replaces RULE and POD in a query with matchers for the dashboard's variables: RULE selects service, pod
// and rule, POD selects service and pod.
func fill(expr string) string {
	const pod = `job=~"$job", instance=~"$instance"`
	return strings.NewReplacer(
		"{RULE", "{"+pod+`, distributed_lock_rule=~"$rule"`,
		"{POD", "{"+pod,
	).Replace(expr)
}

// Exprs returns the queries of a panel as in the dashboard, with Grafana's variables.
func (p *Panel) Exprs() (exprs []string) {
	for _, q := range p.Queries {
		exprs = append(exprs, fill(q.Expr))
	}
	return exprs
}
