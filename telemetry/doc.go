// Package telemetry tells OpenTelemetry and slog what locks do: it implements the
// observers of packages core and aspect. It uses OpenTelemetry's API only; the SDK,
// its sampling and its exporters are the application's.
//
//	tel, err := telemetry.New(telemetry.WithLogger(slog.Default()))
//	locks, err := core.New(rdb, core.WithObserver(tel.Observer()))
//	guard, err := ginlock.New(locks) // has the observers of locks; likewise grpclock, aspect
//
// How to connect Prometheus, OTLP, otelgin and otelgrpc, in ten lines each, is in
// examples/wiring; a Grafana dashboard, Prometheus alerts and their runbooks are in
// examples/dashboards; [Metrics] has the metrics as data.
//
// Contract:
//
//   - Nothing here fails, blocks or changes a lock. A panic of an exporter is
//     contained by the callers of observers.
//   - No series has a key, an owner or an error text in a label. Labels are the
//     rule, the kind and words of fixed lists, so 10,000 keys add no series. A rule is
//     what [core.Label] says; acquisitions without one are rule "none", and after
//     1,000 different rules (see [WithMaxRules]) the others are rule
//     "other".
//   - Known rules exist at zero: the counters of a rule have their series from the first
//     collection after the rule was compiled or first used, also when the program sets its meter
//     provider later. A cause that a rule cannot have has no series. The series of callers that leave
//     (canceled, deadline) begin with the first such caller, and histograms with their first value.
//   - A span shows a hash of the key ([core.KeyHash]); the key itself only with
//     [WithRawKeys]. The same holds for logs.
//   - A lock that is taken marks no span as an error. A backend failure, a loss, a
//     leak and a failed release do, by error.type and the status.
//
// # Cost
//
// Attribute sets are computed once and looked up without allocation. An acquisition
// with its hold spends about
//
//	0.2 µs  with no-op providers, no allocation
//	1.0 µs  with a metrics SDK, no allocation
//	1.8 µs  with a tracing SDK too, if the trace is not sampled
//	5.3 µs  if it is sampled: 0.6 more than the SDKs take for the same two spans and values,
//	        written by hand, of which the spans are 3.8
//
// beside some 50 µs for the two round trips to a Redis on the same machine. (BenchmarkCost, an
// Intel Xeon that had other work to do; it takes all of them in turns, and the ratios to an
// acquisition without telemetry in the same run. Those were 0.96 to 1.03 with metrics, and 0.95
// to 1.05 with traces that are not sampled: within what two runs of the same differ by.)
//
// Exemplars cost as much as the values. wait.duration and hold.duration have them for every
// sampled acquisition; acquire.duration from 1 ms on, and lease.remaining.ratio where at most half
// of the lease was left.
//
// # Spans
//
// Both are children of the span in the caller's context (otelgin, otelgrpc, your
// own). Spans of the Redis client are below lock.acquire, if it makes any: by hooks, such
// as those of redisotel, that it has before core.New is called. Those of a release are below
// the span in the context of the release, and those of renewals below none. They name keys,
// unless the hook is told not to.
//
//	span          covers
//	lock.acquire  one Acquire, waiting included, whatever its outcome
//	lock.hold     from there to the release; parent of what the handler does
//
// A hold that is handed over ([core.Hold.Handover]) has two spans lock.hold: the first
// ends there, as moved, and is the parent of the second. hold.duration counts it once,
// when it is released.
//
//	attribute                     on       meaning
//	distributed_lock.rule         both     the rule's name
//	distributed_lock.kind         both     reentrant, …
//	distributed_lock.key_hash     both     KeyHash of the Redis key; of several keys the first
//	distributed_lock.key          both     the key itself, only with WithRawKeys, instead of the hash
//	distributed_lock.outcome      both     acquire: acquired, reentered, busy, debounced, overload, backend, key, canceled; hold: released, left, moved, lost, failed, leaked
//	distributed_lock.holder       both     holder field in Redis, "<client id>:<n>"; holds that pass the lock on have one field; client.info leads to the pod
//	distributed_lock.reentry      both     true if the context held the lock already
//	distributed_lock.token        hold     fencing token, where the kind has one
//	distributed_lock.attempts     acquire  attempts sent to Redis
//	distributed_lock.blocked_by   acquire  holder field that had the lock, also on the event contended and on links; the waiter's own if the lock was passed on to it
//	distributed_lock.late         hold     on the event renewed_late: by how much, in seconds
//	error.type                    both     timeout, redis_error, wrong_type, unavailable, lost, leaked, _OTHER; with status Error
//
//	event           on       meaning
//	contended       acquire  the lock was taken, or others were queued before
//	handed_over     both     received from, or given to, another caller of this process: handed off by a script, or passed on in memory
//	renewed_late    hold     the watchdog was late
//	renewal_failed  hold     the watchdog got no good answer; error.type
//	lost            hold     the lock ended under its holder
//
// A waiter that is blocked by a hold of this process has a link to the span of that hold, if that
// records: from lock.acquire to the first hold that it found in its way, and to the last one if
// that is another, each with the attribute distributed_lock.blocked_by. A holder elsewhere is
// known by its field only, which its own lock.hold has as distributed_lock.holder. Of several holds
// with one field, which pass the lock on ([core.Hold.Field]), the times say which was in the way.
//
// # Metrics
//
// Histograms of seconds have buckets from 100 µs to 60 s (a View replaces
// them). Labels are attributes with the prefix "distributed_lock.". [Metrics] has the table
// as data.
//
//	metric                                  type           unit        labels                    meaning
//	distributed_lock.wait.duration          histogram      s           rule kind outcome         time in Acquire, failures too
//	distributed_lock.acquire.duration       histogram      s           rule kind                 round trip of an uncontended acquisition: is Redis slow?
//	distributed_lock.hold.duration          histogram      s           rule kind outcome         from acquired to released
//	distributed_lock.lease.remaining.ratio  histogram      1           rule kind                 part of the lease that was left at the release; 0 if it was lost
//	distributed_lock.waiters                updowncounter  {waiter}    rule kind                 callers that wait now
//	distributed_lock.held                   updowncounter  {hold}      rule kind                 holds that were not released yet, re-entries not counted
//	distributed_lock.oldest_wait            gauge          s           client.id                 how long the first of the waiting callers has been waiting
//	distributed_lock.longest_hold           gauge          s           client.id                 how long the oldest hold has lasted
//	distributed_lock.renewals               counter        {renewal}   rule kind outcome         lease renewals: renewed, late, failed
//	distributed_lock.lost                   counter        {hold}      rule kind                 holds that ended under their holder
//	distributed_lock.leaks                  counter        {hold}      rule kind                 holds that were never released, found when they were garbage-collected
//	distributed_lock.release.failures       counter        {failure}   rule kind                 releases that Redis did not confirm
//	distributed_lock.failures               counter        {failure}   rule kind cause strategy  locks not acquired or not kept, and what answered
//	distributed_lock.unlocked               counter        {call}      rule kind reason          handlers run without their lock: proceed, disabled, dry_run, when
//	distributed_lock.handoffs               counter        {handoff}   rule kind                 locks that went to another caller of the process, by a script or in memory
//	distributed_lock.dry_runs               counter        {call}      rule kind outcome         what a rule in dry run would have done: acquired, busy, …
//	distributed_lock.rules                  updowncounter  {rule}      state                     compiled rules: enabled, disabled, dry_run
//	distributed_lock.rule.wait_time         gauge          s           rule kind                 how long a call of the rule waits at most; none if not at all, or for ever
//	distributed_lock.rule.lease_time        gauge          s           rule kind                 the rule's fixed lease; none if it is renewed
//	distributed_lock.reload.timestamp       gauge          s           hash                      when the rule file in force was loaded, Unix time
//	distributed_lock.reloads                counter        {reload}    outcome                   attempts to take a rule file into force: applied, refused
//	distributed_lock.client.info            gauge          {client}    client.id                 1 for each client that is open; its id begins the holder fields in Redis
//	distributed_lock.deadlocks              counter        {deadlock}  none                      rings of callers that wait for each other; made by package lockz
//
// lease.remaining.ratio is how a loss announces itself: a hold that was released with little of
// its lease left nearly lost it. Of a lease that is renewed about two thirds or more are left when Redis
// answers. Of rules that share their labels, rule.wait_time and rule.lease_time are the shortest.
//
// The Prometheus exporter of OpenTelemetry writes a dot as _, in labels too, and adds _seconds to metrics in
// seconds, and _total to counters: [Metric] has these names.
//
// The outcomes of wait.duration are acquired, reentered, busy, debounced, overload,
// backend, key and canceled; those of hold.duration released, left, lost, failed and
// leaked. Of a hold that is left nobody is the holder any more, and its key stays until it
// expires: [core.Hold.Leave], such as for a debounce window, or [core.Client.Close], whose context
// ended before the handler did. The second is logged, too. Neither is lost: nobody else has the
// lock before the key is gone.
//
// # Logs
//
// A message goes on after these words where there is more to say. Keys in brackets are there
// when they say something.
//
//	message                                              level  keys
//	lock lost under its holder                           ERROR  rule kind key_hash holder held error_type error
//	lock left to its lease                               WARN   rule kind key_hash holder held
//	lock never released: its Hold was garbage-collected  ERROR  rule kind key_hash holder held
//	lock release failed                                  WARN   rule kind key_hash holder held error_type error
//	lock renewal failed                                  WARN   rule kind key_hash holder held error_type error
//	lock backend failed                                  WARN   rule kind key_hash waited error_type error
//	key holds something that is not a lock               ERROR  rule kind key_hash waited error_type error
//	long wait for a lock                                 WARN   rule kind key_hash waited outcome blocked_by [error_type error]
//	lock backend unavailable                             ERROR  client error_type error
//	lock backend available again                         INFO   client after
//	lock rules loaded                                    ERROR  file hash rules [disabled dry_run] [unlocked]
//	lock rules refused                                   ERROR  file hash [problems] [error stack]
//	warning about lock rules                             WARN   [file line column rule endpoint field] problem [hint]
//
// Without a Telemetry package core logs that a key holds no lock and that the backend is
// unavailable or available again, and packages ruleset and aspect what is said of rules: with the
// same messages, to [slog.Default].
//
// rule, kind, outcome, holder, blocked_by and error_type are the words of spans and metrics,
// client is the label client.id, and key_hash is [core.KeyHash]; with [WithRawKeys] it is key instead,
// the key itself. held, waited and after are durations. Errors name no key: see [core.ErrorText].
// Of each of the first eight messages at most 10 are logged in 10 seconds; suppressed says how many
// were not since the last one. problems is a list: what is wrong with a file, each with its place, in one line; a file
// that cannot be read has error in its place. Rules that are loaded are an ERROR only if handlers run unlocked from now on, a
// WARN if the file is disabled or a dry run as before, and else INFO.
//
// Records have the context of the request, and no key for the trace: trace_id and span_id are
// added by a handler that knows OpenTelemetry, such as that of otelslog. They are written in the
// goroutine that has the trouble, never when a lock is taken and released as it should be.
package telemetry
