package board

// Kind is how a panel shows its numbers.
type Kind string

// The kinds of panels.
const (
	Lines Kind = "timeseries"
	Stat  Kind = "stat"  // one number, now
	Table Kind = "table" // a row for each series, now
)

// Row is a question, with the panels that answer it.
type Row struct {
	Question string
	Panels   []Panel
}

// Panel is one answer.
type Panel struct {
	Title   string
	Answers string // what it tells, and what to do: its description in Grafana
	Kind    Kind
	Unit    string // as Grafana names units
	Queries []Query
}

// Query is a query of a panel, in PromQL with the variables of Grafana.
type Query struct {
	Expr   string
	Legend string // of one series; empty in tables
}

// Rows are the rows of the dashboard from top to bottom, in the order of the questions that
// someone asks at night.
func Rows() []Row {
	return []Row{
		lockOrHandler(), redis(), refused(), holders(), wentWrong(), leases(), waiters(), ruleSets(), days(),
	}
}

func lockOrHandler() Row {
	return Row{"Is it the lock, or a slow handler?", []Panel{
		{
			Title: "Wait and hold, p99", Kind: Lines, Unit: "s",
			Answers: "How long callers wait for the lock, beside how long they keep it. Only wait high: many callers, or one that holds long. Both high: the handler is slow, and the lock passes it on. A dot is a trace.",
			Queries: []Query{
				{p99("wait"), "wait {{distributed_lock_rule}}"},
				{p99("hold"), "hold {{distributed_lock_rule}}"},
			},
		},
		{
			Title: "Part of the time spent waiting", Kind: Lines, Unit: "percentunit",
			Answers: "Of the time that calls spend in Acquire or with the lock, the part that is waiting. Near 1 the rule is one queue: take a finer key, or hold it for less.",
			Queries: []Query{{
				rate("wait_duration_seconds_sum", byRule) + "\n/ (" + rate("wait_duration_seconds_sum", byRule) + "\n+ " + rate("hold_duration_seconds_sum", byRule) + ")",
				"{{distributed_lock_rule}}",
			}},
		},
		{
			Title: "Acquisitions by outcome", Kind: Lines, Unit: "ops",
			Answers: "How many calls of each rule got the lock, and how many did not. Falling acquired with rising busy is a holder that does not let go.",
			Queries: []Query{{rate("wait_duration_seconds_count", byRule+", distributed_lock_outcome"), "{{distributed_lock_rule}} {{distributed_lock_outcome}}"}},
		},
	}}
}

func redis() Row {
	return Row{"Is Redis slow, or down?", []Panel{
		{
			Title: "Round trip to Redis", Kind: Lines, Unit: "s",
			Answers: "How long Redis takes to give a lock that is free. It is no wait: when this rises, Redis or the network is slow for all rules.",
			Queries: []Query{
				{quantile("0.5", "acquire", ""), "p50"},
				{quantile("0.99", "acquire", ""), "p99"},
			},
		},
		{
			Title: "Calls that Redis did not answer", Kind: Lines, Unit: "ops",
			Answers: "Acquisitions for which Redis gave no answer, and the strategy that answered the client instead. Anything above 0: look at Redis, not at the lock.",
			Queries: []Query{{rate("failures_total", byRule+", distributed_lock_strategy", `distributed_lock_cause="backend"`), "{{distributed_lock_rule}} {{distributed_lock_strategy}}"}},
		},
		{
			Title: "Renewals of leases", Kind: Lines, Unit: "ops",
			Answers: "What the watchdog does for holds without a fixed lease. Failed or late: locks are lost soon, when the lease is over.",
			Queries: []Query{{rate("renewals_total", "distributed_lock_outcome"), "{{distributed_lock_outcome}}"}},
		},
	}}
}

func refused() Row {
	return Row{"What was refused, and what did clients get?", []Panel{
		{
			Title: "Refused, by cause and answer", Kind: Lines, Unit: "ops",
			Answers: "Locks that were not acquired: busy, debounced, overload, backend, key. The second word is the strategy that answered: error is 409, 429, 503 or 400, proceed ran without the lock.",
			Queries: []Query{{rate("failures_total", byRule+", distributed_lock_cause, distributed_lock_strategy") + " > 0", "{{distributed_lock_rule}} {{distributed_lock_cause}} → {{distributed_lock_strategy}}"}},
		},
		{
			Title: "Part of the calls that was refused", Kind: Lines, Unit: "percentunit",
			Answers: "Of all calls of a rule, the part that did not get the lock. Compare with what the clients can bear.",
			Queries: []Query{{
				rate("failures_total", byRule, `distributed_lock_cause!="lost"`) + "\n/ " + rate("wait_duration_seconds_count", byRule),
				"{{distributed_lock_rule}}",
			}},
		},
		{
			Title: "Requests without a key", Kind: Lines, Unit: "ops",
			Answers: "Requests whose key could not be made: a field is missing or of the wrong type. A client was changed, or the rule is wrong.",
			Queries: []Query{{rate("failures_total", byRule, `distributed_lock_cause="key"`), "{{distributed_lock_rule}}"}},
		},
		{
			Title: "What dry runs would have done", Kind: Lines, Unit: "ops",
			Answers: "Rules in dry run lock nothing. This is what they would have done: the part that is busy would have waited or been refused.",
			Queries: []Query{{rate("dry_runs_total", byRule+", distributed_lock_outcome"), "{{distributed_lock_rule}} {{distributed_lock_outcome}}"}},
		},
	}}
}

func holders() Row {
	return Row{"Who holds longest?", []Panel{
		{
			Title: "Oldest hold of each client", Kind: Table, Unit: "s",
			Answers: "The clients with the oldest holds, and the pod (instance) that each runs in. The client id begins the holder field in Redis: interlock who KEY, or HGETALL KEY, shows it. Open the live page of that pod, or its traces.",
			Queries: []Query{{"topk(10, max by (job, instance, distributed_lock_client_id) (distributed_lock_longest_hold_seconds{POD}))", ""}},
		},
		{
			Title: "Oldest hold", Kind: Lines, Unit: "s",
			Answers: "How old the oldest hold of each pod is. A line that rises with the clock is one holder that does not let go.",
			Queries: []Query{{"max by (instance) (distributed_lock_longest_hold_seconds{POD})", "{{instance}}"}},
		},
		{
			Title: "Locks held", Kind: Lines, Unit: "short",
			Answers: "How many locks of each rule are held now, in all pods.",
			Queries: []Query{{"sum by (distributed_lock_rule) (distributed_lock_held{RULE})", "{{distributed_lock_rule}}"}},
		},
		{
			Title: "Clients and their pods", Kind: Table, Unit: "short",
			Answers: "Which lock client runs in which pod. Look up here whose a holder field is.",
			Queries: []Query{{"max by (job, instance, distributed_lock_client_id) (distributed_lock_client_info{POD})", ""}},
		},
	}}
}

func wentWrong() Row {
	return Row{"What was lost, ran unlocked, or was not released?", []Panel{
		{
			Title: "Locks lost", Kind: Lines, Unit: "short",
			Answers: "Holds that ended under their holder: the lease ran out, Redis lost its data, or somebody deleted the key. Another may have held the lock at the same time.",
			Queries: []Query{{increase("lost_total", byRule), "{{distributed_lock_rule}}"}},
		},
		{
			Title: "Ran without the lock", Kind: Lines, Unit: "short",
			Answers: "Handlers that ran unlocked, and why: proceed is a strategy for a lock that was not acquired, disabled and dry_run are switches, when is a condition of the rule.",
			Queries: []Query{{increase("unlocked_total", byRule+", distributed_lock_reason") + " > 0", "{{distributed_lock_rule}} {{distributed_lock_reason}}"}},
		},
		{
			Title: "Releases that failed", Kind: Lines, Unit: "short",
			Answers: "Releases that Redis did not confirm. The lock may stay until its lease is over.",
			Queries: []Query{{increase("release_failures_total", byRule), "{{distributed_lock_rule}}"}},
		},
		{
			Title: "How holds ended", Kind: Lines, Unit: "ops",
			Answers: "Released is right. Leaked: the program forgot Release. Lost and failed: see beside. Left: a debounce window, work that goes on, or a shutdown that did not wait for it.",
			Queries: []Query{{rate("hold_duration_seconds_count", byRule+", distributed_lock_outcome"), "{{distributed_lock_rule}} {{distributed_lock_outcome}}"}},
		},
		{
			Title: "Deadlocks", Kind: Lines, Unit: "short",
			Answers: "Rings of callers that wait for each other, found by the live page of a pod. It shows who; take the keys in one order, or together.",
			Queries: []Query{{`sum by (instance) (increase(distributed_lock_deadlocks_total{POD}[$__rate_interval]))`, "{{instance}}"}},
		},
	}}
}

func leases() Row {
	return Row{"Are leases and wait times long enough?", []Panel{
		{
			Title: "Part of the lease left at release", Kind: Lines, Unit: "percentunit",
			Answers: "What was left of the lease when holds were released: the worst twentieth. Near 0 a loss is near. Lengthen the lease, leave it to the watchdog, or make the handler faster.",
			Queries: []Query{{leaseLeft("0.05", ""), "{{distributed_lock_rule}}"}},
		},
		{
			Title: "Part of the fixed lease used", Kind: Lines, Unit: "percentunit",
			Answers: "The longest holds as a part of the rule's fixed lease, p99. Above 70 % there is an alert. Rules that the watchdog renews are not here.",
			Queries: []Query{{leaseLeft("0.01", "1 - ") + "\nand on (distributed_lock_rule) distributed_lock_rule_lease_time_seconds{RULE}", "{{distributed_lock_rule}}"}},
		},
		{
			Title: "Wait p99 of the wait time", Kind: Lines, Unit: "percentunit",
			Answers: "The longest waits as a part of the rule's wait time, p99. At 100 % callers are refused as busy. It is above 100 % where the wait time lies inside a bucket of the histogram.",
			Queries: []Query{{p99("wait") + "\n/ max by (distributed_lock_rule) (distributed_lock_rule_wait_time_seconds{RULE})", "{{distributed_lock_rule}}"}},
		},
	}}
}

func waiters() Row {
	return Row{"Who waits?", []Panel{
		{
			Title: "Waiters", Kind: Lines, Unit: "short",
			Answers: "Callers that wait now, in all pods. A line that only rises never drains: more come than the holders let through.",
			Queries: []Query{{"sum by (distributed_lock_rule) (distributed_lock_waiters{RULE})", "{{distributed_lock_rule}}"}},
		},
		{
			Title: "Oldest wait", Kind: Lines, Unit: "s",
			Answers: "How long the first waiter of each pod has been waiting. Far beyond the hold times: the lock is held by somebody who is stuck, or the other pods are served first.",
			Queries: []Query{{"max by (instance) (distributed_lock_oldest_wait_seconds{POD})", "{{instance}}"}},
		},
		{
			Title: "Passed on inside a process", Kind: Lines, Unit: "ops",
			Answers: "Releases that gave the lock to the next waiter of the same process in one step. Many of them: the rule is contended within a pod.",
			Queries: []Query{{rate("handoffs_total", byRule), "{{distributed_lock_rule}}"}},
		},
		{
			Title: "Turns of each process", Kind: Lines, Unit: "ops",
			Answers: "How often each pod got the lock. Pods under the same load should have the same share; one that has far less is starved, or gets no requests.",
			Queries: []Query{{rate("wait_duration_seconds_count", "instance", `distributed_lock_outcome="acquired"`), "{{instance}}"}},
		},
	}}
}

func ruleSets() Row {
	return Row{"Which rules are in force?", []Panel{
		{
			Title: "Different rule sets", Kind: Stat, Unit: "short",
			Answers: "How many different rule files are in force. More than 1 for longer than a rollout: some pods did not get the new file, or refused it.",
			Queries: []Query{{"count(count by (job, distributed_lock_hash) (distributed_lock_reload_timestamp_seconds{POD}))", "rule sets"}},
		},
		{
			Title: "Rule sets of the pods", Kind: Table, Unit: "dateTimeAsIso",
			Answers: "Which rule file each pod has, and since when. The hash is how sha256sum of the file begins.",
			Queries: []Query{{"max by (job, instance, distributed_lock_hash) (distributed_lock_reload_timestamp_seconds{POD}) * 1000", ""}},
		},
		{
			Title: "Reloads", Kind: Lines, Unit: "short",
			Answers: "Attempts to take a rule file into force. After a refusal the old rules stay in force, and the log says why.",
			Queries: []Query{{"sum by (distributed_lock_outcome) (increase(distributed_lock_reloads_total{POD}[$__rate_interval]))", "{{distributed_lock_outcome}}"}},
		},
		{
			Title: "Rules by state", Kind: Lines, Unit: "short",
			Answers: "How many rules are enabled, disabled or in dry run. Disabled rules lock nothing.",
			Queries: []Query{{"max by (distributed_lock_state) (distributed_lock_rules{POD})", "{{distributed_lock_state}}"}},
		},
	}}
}

func days() Row {
	return Row{"Since when is it so?", []Panel{
		{
			Title: "Wait and hold over days", Kind: Lines, Unit: "s",
			Answers: "The p99 of five minutes as Prometheus recorded it, of all pods of a service: cheap over weeks. Needs the recording rules.",
			Queries: []Query{
				{`job_rule:distributed_lock_wait_seconds:p99_5m{job=~"$job", distributed_lock_rule=~"$rule"}`, "wait {{job}} {{distributed_lock_rule}}"},
				{`job_rule:distributed_lock_hold_seconds:p99_5m{job=~"$job", distributed_lock_rule=~"$rule"}`, "hold {{job}} {{distributed_lock_rule}}"},
			},
		},
	}}
}
