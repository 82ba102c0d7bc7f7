// Package telemetry reports locks to OpenTelemetry and slog: it implements the observers of packages core and
// aspect. It uses only the API of OpenTelemetry. The application chooses the SDK, the sampling and the
// exporters.
//
//	tel, err := telemetry.New(telemetry.WithLogger(slog.Default()))
//	locks, err := core.New(rdb, core.WithObserver(tel.Observer()))
//	guard, err := ginlock.New(locks) // uses the observers of locks; so do grpclock and aspect
//
// examples/wiring connects Prometheus, OTLP, otelgin and otelgrpc, in ten lines each. examples/dashboards
// contains a Grafana dashboard, Prometheus alerts and their runbooks. [Metrics] returns the metrics as data.
//
// Contract:
//
//   - The package never fails, blocks or changes a lock. If an exporter panics, the caller of the observer
//     recovers.
//   - No label contains a key, an owner or an error text. Labels are the rule, the kind and words of fixed
//     lists, so 10,000 keys add no series. The rule is the name in [core.Label]. An acquisition without one has
//     the rule "none". After 1,000 rules (see [WithMaxRules]), further ones have the rule "other".
//   - Counters of known rules start at zero. Their series start at the first collection after the rule is
//     compiled or first used, even if the program sets its meter provider later. A cause that a rule cannot
//     have has no series. The series of callers that leave (canceled, deadline) start with the first such
//     caller, and histograms start with their first value.
//   - Spans and logs name the hash of a key ([core.KeyHash]). They name the key itself only with [WithRawKeys].
//   - A taken lock does not mark a span as an error. A backend failure, a loss, a leak and a failed release do,
//     with error.type and the status.
//
// # Cost
//
// Attribute sets are computed once and looked up without allocation. An acquisition and its hold together
// take about
//
//	0.2 µs  with no-op providers, no allocation
//	1.0 µs  with a metrics SDK, no allocation
//	1.8 µs  with a tracing SDK too, if the trace is not sampled
//	5.3 µs  if it is sampled; the same two spans and values, recorded with the SDKs alone,
//	        take 4.7 µs, 3.8 of them for the spans
//
// The two round trips to a Redis on the same machine take some 50 µs. BenchmarkCost measured these times on a
// busy Intel Xeon, with all variants in turns. In the same run an acquisition with metrics took 0.96 to 1.03
// times as long as one without telemetry, and with unsampled traces 0.95 to 1.05 times. Two runs of the same
// variant differ by as much.
//
// Recording an exemplar costs as much as recording the value. wait.duration and hold.duration have exemplars
// for every sampled acquisition. acquire.duration has them from 1 ms on, and lease.remaining.ratio if at most
// half of the lease was left.
//
// # Spans
//
// Both spans are children of the span in the caller's context, such as a span of otelgin or otelgrpc. If the caller has no
// span, as in a job, lock.hold is a child of lock.acquire, so that the job has one trace. If the Redis
// client has hooks that start spans, such as the hooks of redisotel, and they are added before core.New is called,
// these spans are children of lock.acquire. The spans of a release are children of the span in the context of the
// release, and the spans of renewals have no parent. Such hooks put keys into spans unless they are configured not
// to.
//
//	span          covers
//	lock.acquire  one Acquire, waiting included, whatever its outcome
//	lock.hold     from the acquisition to the release; parent of the handler's spans
//
// A hold that is handed over ([core.Hold.Handover]) has two spans lock.hold. The first ends at the handover with
// the outcome moved and is the parent of the second. hold.duration counts the hold once, at its release.
//
//	attribute                     on       meaning
//	distributed_lock.rule         both     name of the rule
//	distributed_lock.kind         both     kind of lock: reentrant, …
//	distributed_lock.key_hash     both     KeyHash of the Redis key; of the first key if there are several
//	distributed_lock.key          both     the key itself instead of the hash, only with WithRawKeys
//	distributed_lock.outcome      both     acquire: acquired, reentered, busy, debounced, overload, backend, key, canceled; hold: released, left, moved, lost, held_too_long, failed, leaked
//	distributed_lock.holder       both     holder field in Redis, "<client id>:<n>"; holds that pass the lock on have the same field; client.info leads to the pod
//	distributed_lock.reentry      both     true if the context already held the lock
//	distributed_lock.token        hold     fencing token, if the kind has one
//	distributed_lock.attempts     acquire  attempts that were sent to Redis
//	distributed_lock.blocked_by   acquire  holder field that had the lock; also on the event contended and on links; the waiter's own field if the lock was passed on to it
//	distributed_lock.late         hold     on the event renewed_late: how late the renewal was, in seconds
//	error.type                    both     timeout, redis_error, wrong_type, unavailable, lost, held_too_long, leaked, _OTHER; with status Error
//
//	event           on       meaning
//	contended       acquire  the lock was taken, or other callers were queued before
//	handed_over     both     the lock came from, or went to, another caller of this process: handed off by a script, or passed on in memory
//	renewed_late    hold     the watchdog renewed the lease late
//	renewal_failed  hold     the watchdog could not renew the lease; error.type
//	lost            hold     the hold lost its lock
//	held_too_long   hold     the limit of the hold (MaxHold) has passed
//
// A waiter that is blocked by a hold of this process has a link from lock.acquire to the span of the hold, if that
// span records. It has a second link to the last hold that blocked it, if that is a different hold. Each link has
// the attribute distributed_lock.blocked_by. A holder in another process is known only by its field, which its
// lock.hold has as distributed_lock.holder. If holds pass the lock on, several of them have the same field
// ([core.Hold.Field]); their times show which of them blocked the waiter.
//
// # Metrics
//
// Histograms of seconds have buckets from 100 µs to 60 s; a View replaces them. Labels are attributes with the
// prefix "distributed_lock.". [Metrics] returns this table as data.
//
//	metric                                  type           unit        labels                    meaning
//	distributed_lock.wait.duration          histogram      s           rule kind outcome         time in Acquire, including failures
//	distributed_lock.acquire.duration       histogram      s           rule kind                 round trip of an uncontended acquisition: is Redis slow?
//	distributed_lock.hold.duration          histogram      s           rule kind outcome         from the acquisition to the release
//	distributed_lock.lease.remaining.ratio  histogram      1           rule kind                 part of the lease that was left at the release; 0 if the lock was lost
//	distributed_lock.waiters                updowncounter  {waiter}    rule kind                 callers that are waiting
//	distributed_lock.held                   updowncounter  {hold}      rule kind                 holds that have not ended, without re-entries
//	distributed_lock.oldest_wait            gauge          s           client.id                 how long the caller that waits longest has waited
//	distributed_lock.longest_hold           gauge          s           client.id                 age of the oldest hold
//	distributed_lock.renewals               counter        {renewal}   rule kind outcome         renewals of leases: renewed, late, failed
//	distributed_lock.lost                   counter        {hold}      rule kind                 holds that lost their lock
//	distributed_lock.held_too_long          counter        {hold}      rule kind                 holds that were held for longer than their limit (MaxHold)
//	distributed_lock.leaks                  counter        {hold}      rule kind                 holds that were garbage-collected without a release
//	distributed_lock.release.failures       counter        {failure}   rule kind                 releases that Redis did not confirm
//	distributed_lock.failures               counter        {failure}   rule kind cause strategy  locks that were not acquired or were lost, and the strategy that answered
//	distributed_lock.unlocked               counter        {call}      rule kind reason          handlers that ran without their lock: proceed, disabled, dry_run, when
//	distributed_lock.handoffs               counter        {handoff}   rule kind                 locks that went to another caller of the process, by a script or in memory
//	distributed_lock.dry_runs               counter        {call}      rule kind outcome         what rules in dry run would have done: acquired, busy, …
//	distributed_lock.rules                  updowncounter  {rule}      state                     compiled rules: enabled, disabled, dry_run
//	distributed_lock.rule.wait_time         gauge          s           rule kind                 longest wait of a call; no series if it does not wait, or waits for ever
//	distributed_lock.rule.lease_time        gauge          s           rule kind                 fixed lease of the rule; no series if the lease is renewed
//	distributed_lock.reload.timestamp       gauge          s           hash                      when the rule file in force was loaded, Unix time
//	distributed_lock.reloads                counter        {reload}    outcome                   loads of a rule file: applied, refused
//	distributed_lock.client.info            gauge          {client}    client.id                 1 for each open client; its id begins the holder fields in Redis
//	distributed_lock.deadlocks              counter        {deadlock}  none                      rings of callers that wait for each other; made by package lockz
//
// lease.remaining.ratio warns of losses: a hold that is released with little of its lease left nearly lost its
// lock. If the lease is renewed and Redis answers, about two thirds of the lease or more are left. If rules
// share their labels, rule.wait_time and rule.lease_time are the shortest of their times.
//
// The Prometheus exporter of OpenTelemetry writes a dot as _, in labels too. It adds _seconds to metrics in
// seconds and _total to counters. [Metric] contains these names.
//
// The outcomes of wait.duration are acquired, reentered, busy, debounced, overload, backend, key and canceled.
// The outcomes of hold.duration are released, left, lost, held_too_long, failed and leaked. A hold that was left has ended,
// but its key stays in Redis until the key expires. [core.Hold.Leave] leaves a hold, for example for a debounce
// window. [core.Client.Close] leaves the holds whose handlers have not returned when its context is done, and
// each of these is also logged. In both cases the hold is not lost, because no other caller gets the lock
// before the key expires.
//
// A hold that was held for longer than its limit ([core.MaxHold]) is counted in held_too_long and not in lost: the
// lock is still held, until its release or until its lease has expired. Its outcome is held_too_long in both cases.
//
// # Logs
//
// A message may continue after these words. Keys in brackets are absent from some records.
//
//	message                                              level  keys
//	lock lost under its holder                           ERROR  rule kind key_hash holder held error_type error
//	lock held too long                                   WARN   rule kind key_hash holder held
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
// Without a Telemetry, package core logs that a key holds something other than a lock, that the backend is
// unavailable or available again, losses, leaks and failed releases, and that another process has a lock; packages
// ruleset and aspect log the records about rules. They use the same messages and log to [slog.Default]. The records of
// core about locks also have a hint.
//
// rule, kind, outcome, holder, blocked_by and error_type have the values of spans and metrics. client is the
// label client.id. key_hash is [core.KeyHash]; with [WithRawKeys], key, the key itself, replaces it. held,
// waited and after are durations. Errors contain no key: see [core.ErrorText].
//
// For each of the first nine messages, at most 10 records are written in 10 seconds. suppressed is the number of
// records that were not written since the last one. problems lists the problems of a file, one line for each,
// with its place. For a file that cannot be read, error replaces problems. The record of loaded rules is an ERROR
// if endpoints run unlocked from now on, a WARN if the file was disabled or a dry run before and still is, and
// otherwise INFO.
//
// Records carry the context of the request but no attribute for the trace: a handler that supports OpenTelemetry,
// such as the handler of otelslog, adds trace_id and span_id. The goroutine in which a problem occurs writes the
// record. An acquisition and a release without problems write none.
package telemetry
