package board

// Form is the form in which a panel shows its numbers.
type Form string

// The forms of panels.
const (
	Lines Form = "timeseries"
	Stat  Form = "stat"  // a current number
	Table Form = "table" // the current numbers, one row for each series
)

// Row is a question and the panels that answer it.
type Row struct {
	Question string
	Panels   []Panel
}

// Panel is one answer to a question.
type Panel struct {
	Title   string
	Answers string // what the panel shows and what to do; the description in Grafana
	Form    Form
	Unit    string // Grafana's name of the unit
	Queries []Query
}

// Query is a query of a panel, in PromQL with the variables of Grafana.
type Query struct {
	Expr   string
	Legend string // the legend of a series; empty in tables
}

// Rows returns the rows of the dashboard from top to bottom, in the order in which an operator asks their
// questions during an incident.
func Rows() []Row {
	return []Row{
		lockOrHandler(), redis(), refused(), holders(), wentWrong(), leases(), waiters(), ruleSets(), days(),
	}
}

func lockOrHandler() Row {
	return Row{"Is it the lock, or a slow handler?", []Panel{
		{
			Title: "Wait and hold, p99", Form: Lines, Unit: "s",
			Answers: "How long callers wait for the lock, and how long they hold it. If only the wait is long, there are many callers, or one holder keeps the lock for long. If both are long, the handler is slow, and its callers wait for it. Each dot links to a trace.",
			Queries: []Query{
				{p99("wait"), "wait {{distributed_lock_rule}}"},
				{p99("hold"), "hold {{distributed_lock_rule}}"},
			},
		},
		{
			Title: "Share of time spent waiting", Form: Lines, Unit: "percentunit",
			Answers: "The time that calls spend in Acquire, as a share of the time in Acquire and with the lock. Near 100 % the rule is one queue: use a finer key, or hold the lock for a shorter time.",
			Queries: []Query{{
				rate("wait_duration_seconds_sum", byRule) + "\n/ (" + rate("wait_duration_seconds_sum", byRule) + "\n+ " + rate("hold_duration_seconds_sum", byRule) + ")",
				"{{distributed_lock_rule}}",
			}},
		},
		{
			Title: "Acquisitions by outcome", Form: Lines, Unit: "ops",
			Answers: "How many calls of each rule got the lock, and how many did not. If acquired falls while busy rises, a holder does not release the lock.",
			Queries: []Query{{rate("wait_duration_seconds_count", byRule+", distributed_lock_outcome"), "{{distributed_lock_rule}} {{distributed_lock_outcome}}"}},
		},
	}}
}

func redis() Row {
	return Row{"Is Redis slow, or down?", []Panel{
		{
			Title: "Round trip to Redis", Form: Lines, Unit: "s",
			Answers: "How long Redis takes to grant a free lock. This includes no wait for a holder. If it rises, Redis or the network is slow for all rules.",
			Queries: []Query{
				{quantile("0.5", "acquire", ""), "p50"},
				{quantile("0.99", "acquire", ""), "p99"},
			},
		},
		{
			Title: "Calls that Redis did not answer", Form: Lines, Unit: "ops",
			Answers: "Acquisitions without an answer from Redis, and the strategy that answered the client. Above 0, look at Redis and not at the lock.",
			Queries: []Query{{rate("failures_total", byRule+", distributed_lock_strategy", `distributed_lock_cause="backend"`), "{{distributed_lock_rule}} {{distributed_lock_strategy}}"}},
		},
		{
			Title: "Renewals of leases", Form: Lines, Unit: "ops",
			Answers: "Lease renewals by the watchdog, for holds without a fixed lease. If renewals fail or are late, locks are lost when their leases expire.",
			Queries: []Query{{rate("renewals_total", "distributed_lock_outcome"), "{{distributed_lock_outcome}}"}},
		},
	}}
}

func refused() Row {
	return Row{"What was refused, and what did clients get?", []Panel{
		{
			Title: "Refused, by cause and answer", Form: Lines, Unit: "ops",
			Answers: "Locks that were not acquired. The first word is the cause: busy, debounced, overload, backend or key. The second word is the strategy that answered: error is status 409, 429, 503 or 400; with proceed the handler ran without the lock.",
			Queries: []Query{{rate("failures_total", byRule+", distributed_lock_cause, distributed_lock_strategy") + " > 0", "{{distributed_lock_rule}} {{distributed_lock_cause}} → {{distributed_lock_strategy}}"}},
		},
		{
			Title: "Share of calls refused", Form: Lines, Unit: "percentunit",
			Answers: "The share of the calls of a rule that did not get the lock. Compare it with what clients can tolerate.",
			Queries: []Query{{
				rate("failures_total", byRule, `distributed_lock_cause!="lost"`) + "\n/ " + rate("wait_duration_seconds_count", byRule),
				"{{distributed_lock_rule}}",
			}},
		},
		{
			Title: "Requests without a key", Form: Lines, Unit: "ops",
			Answers: "Requests from which no key could be built, because a field is missing or has the wrong type. A client has changed, or the rule is wrong.",
			Queries: []Query{{rate("failures_total", byRule, `distributed_lock_cause="key"`), "{{distributed_lock_rule}}"}},
		},
		{
			Title: "What dry runs would have done", Form: Lines, Unit: "ops",
			Answers: "Rules in dry run lock nothing. This shows what they would have done: busy calls would have waited or been refused.",
			Queries: []Query{{rate("dry_runs_total", byRule+", distributed_lock_outcome"), "{{distributed_lock_rule}} {{distributed_lock_outcome}}"}},
		},
	}}
}

func holders() Row {
	return Row{"Which holder has a lock longest?", []Panel{
		{
			Title: "Oldest hold of each client", Form: Table, Unit: "s",
			Answers: "The clients with the oldest holds, and the pod (instance) of each. A holder field in Redis begins with the client id: interlock who KEY or HGETALL KEY shows it. Open the live page of that pod, or its traces.",
			Queries: []Query{{"topk(10, max by (job, instance, distributed_lock_client_id) (distributed_lock_longest_hold_seconds{POD}))", ""}},
		},
		{
			Title: "Oldest hold", Form: Lines, Unit: "s",
			Answers: "The age of the oldest hold in each pod. A line that rises steadily is one holder that does not release its lock.",
			Queries: []Query{{"max by (instance) (distributed_lock_longest_hold_seconds{POD})", "{{instance}}"}},
		},
		{
			Title: "Locks held", Form: Lines, Unit: "short",
			Answers: "How many locks of each rule are held, in all pods together.",
			Queries: []Query{{"sum by (distributed_lock_rule) (distributed_lock_held{RULE})", "{{distributed_lock_rule}}"}},
		},
		{
			Title: "Clients and their pods", Form: Table, Unit: "short",
			Answers: "The pod of each lock client. Look up here which pod a holder field belongs to.",
			Queries: []Query{{"max by (job, instance, distributed_lock_client_id) (distributed_lock_client_info{POD})", ""}},
		},
	}}
}

func wentWrong() Row {
	return Row{"What was lost, ran unlocked, or was not released?", []Panel{
		{
			Title: "Locks lost", Form: Lines, Unit: "short",
			Answers: "Holds that lost their lock: the lease expired, Redis lost its data, or the key was deleted. Another caller may have had the lock at the same time. held too long: the limit of a hold (max_hold) has passed; it has the lock until its release, at most one lease longer.",
			Queries: []Query{
				{increase("lost_total", byRule), "{{distributed_lock_rule}}"},
				{increase("held_too_long_total", byRule), "{{distributed_lock_rule}} held too long"},
			},
		},
		{
			Title: "Ran without the lock", Form: Lines, Unit: "short",
			Answers: "Handlers that ran unlocked, and the reason. proceed: the lock was not acquired, and the strategy let the handler run. disabled and dry_run: a switch. when: a condition of the rule.",
			Queries: []Query{{increase("unlocked_total", byRule+", distributed_lock_reason") + " > 0", "{{distributed_lock_rule}} {{distributed_lock_reason}}"}},
		},
		{
			Title: "Releases that failed", Form: Lines, Unit: "short",
			Answers: "Releases that Redis did not confirm. The lock may stay until its lease expires.",
			Queries: []Query{{increase("release_failures_total", byRule), "{{distributed_lock_rule}}"}},
		},
		{
			Title: "How holds ended", Form: Lines, Unit: "ops",
			Answers: "released is normal. leaked: the program did not call Release. lost, held_too_long and failed: see the panels of this row. left: a debounce window, work that continues, or a shutdown that did not wait for a handler.",
			Queries: []Query{{rate("hold_duration_seconds_count", byRule+", distributed_lock_outcome"), "{{distributed_lock_rule}} {{distributed_lock_outcome}}"}},
		},
		{
			Title: "Deadlocks", Form: Lines, Unit: "short",
			Answers: "Rings of callers that wait for each other, found by the live page of a pod. The page shows the callers. Acquire the keys in the same order everywhere, or together.",
			Queries: []Query{{`sum by (instance) (increase(distributed_lock_deadlocks_total{POD}[$__rate_interval]))`, "{{instance}}"}},
		},
	}}
}

func leases() Row {
	return Row{"Are leases and wait times long enough?", []Panel{
		{
			Title: "Share of the lease left at release", Form: Lines, Unit: "percentunit",
			Answers: "How much of the lease was left at the release. One hold in twenty had less than this. Near 0, locks are about to be lost: use a longer lease or the watchdog, or make the handler faster.",
			Queries: []Query{{leaseLeft("0.05", ""), "{{distributed_lock_rule}}"}},
		},
		{
			Title: "Share of the fixed lease used", Form: Lines, Unit: "percentunit",
			Answers: "The longest holds (p99) as a share of the fixed lease of the rule. Above 70 % an alert fires. Rules whose lease the watchdog renews are not shown.",
			Queries: []Query{{leaseLeft("0.01", "1 - ") + "\nand on (distributed_lock_rule) distributed_lock_rule_lease_time_seconds{RULE}", "{{distributed_lock_rule}}"}},
		},
		{
			Title: "Wait p99 as a share of the wait time", Form: Lines, Unit: "percentunit",
			Answers: "The longest waits (p99) as a share of the wait time of the rule. At 100 %, callers are refused as busy. Values above 100 % occur if the wait time lies within a bucket of the histogram.",
			Queries: []Query{{p99("wait") + "\n/ max by (distributed_lock_rule) (distributed_lock_rule_wait_time_seconds{RULE})", "{{distributed_lock_rule}}"}},
		},
	}}
}

func waiters() Row {
	return Row{"Which callers wait?", []Panel{
		{
			Title: "Waiters", Form: Lines, Unit: "short",
			Answers: "Waiting callers, in all pods together. If the line only rises, the queue never drains: more callers come than the lock can serve.",
			Queries: []Query{{"sum by (distributed_lock_rule) (distributed_lock_waiters{RULE})", "{{distributed_lock_rule}}"}},
		},
		{
			Title: "Oldest wait", Form: Lines, Unit: "s",
			Answers: "How long the longest waiter of each pod has waited. If that is much longer than holds take, the holder is stuck, or other pods are served first.",
			Queries: []Query{{"max by (instance) (distributed_lock_oldest_wait_seconds{POD})", "{{instance}}"}},
		},
		{
			Title: "Handed over within a process", Form: Lines, Unit: "ops",
			Answers: "Releases that gave the lock to the next waiter of the same process in one step. If there are many, callers within one pod compete for the lock.",
			Queries: []Query{{rate("handoffs_total", byRule), "{{distributed_lock_rule}}"}},
		},
		{
			Title: "Acquisitions of each pod", Form: Lines, Unit: "ops",
			Answers: "How often each pod got a lock. Pods under equal load should have equal shares. A pod with a much smaller share is starved, or gets no requests.",
			Queries: []Query{{rate("wait_duration_seconds_count", "instance", `distributed_lock_outcome="acquired"`), "{{instance}}"}},
		},
	}}
}

func ruleSets() Row {
	return Row{"Which rules are in force?", []Panel{
		{
			Title: "Different rule sets", Form: Stat, Unit: "short",
			Answers: "How many different rule files are in force. If it stays above 1 after a rollout, some pods did not get the new file, or refused it.",
			Queries: []Query{{"count(count by (job, distributed_lock_hash) (distributed_lock_reload_timestamp_seconds{POD}))", "rule sets"}},
		},
		{
			Title: "Rule set of each pod", Form: Table, Unit: "dateTimeAsIso",
			Answers: "The rule file of each pod, and since when it is in force. The hash is the beginning of the output of sha256sum for the file.",
			Queries: []Query{{"max by (job, instance, distributed_lock_hash) (distributed_lock_reload_timestamp_seconds{POD}) * 1000", ""}},
		},
		{
			Title: "Reloads", Form: Lines, Unit: "short",
			Answers: "Loads of rule files. After a refusal the old rules stay in force, and the log gives the reasons.",
			Queries: []Query{{"sum by (distributed_lock_outcome) (increase(distributed_lock_reloads_total{POD}[$__rate_interval]))", "{{distributed_lock_outcome}}"}},
		},
		{
			Title: "Rules by state", Form: Lines, Unit: "short",
			Answers: "How many rules are enabled, disabled or in dry run. Disabled rules lock nothing.",
			Queries: []Query{{"max by (distributed_lock_state) (distributed_lock_rules{POD})", "{{distributed_lock_state}}"}},
		},
	}}
}

func days() Row {
	return Row{"How long has it been like this?", []Panel{
		{
			Title: "Wait and hold over days", Form: Lines, Unit: "s",
			Answers: "The p99 of five minutes for all pods of a service, as recorded by Prometheus. It is cheap to show for weeks. It needs the recording rules of rules.yml.",
			Queries: []Query{
				{`job_rule:distributed_lock_wait_seconds:p99_5m{job=~"$job", distributed_lock_rule=~"$rule"}`, "wait {{job}} {{distributed_lock_rule}}"},
				{`job_rule:distributed_lock_hold_seconds:p99_5m{job=~"$job", distributed_lock_rule=~"$rule"}`, "hold {{job}} {{distributed_lock_rule}}"},
			},
		},
	}}
}
