// Package telemetry tells OpenTelemetry and slog what locks do: it implements the
// observers of packages core and aspect. It uses OpenTelemetry's API only; the SDK,
// its sampling and its exporters are the application's.
//
//	tel, err := telemetry.New(telemetry.WithLogger(slog.Default()))
//	locks, err := core.New(rdb, core.WithObserver(tel))
//	defer tel.Watch(locks)()
//	guard, err := ginlock.New(locks, ginlock.WithObserver(tel)) // likewise grpclock, aspect
//
// Contract:
//
//   - Nothing here fails, blocks or changes a lock. A panic of an exporter is
//     contained by the callers of observers.
//   - No series has a key, an owner or an error text in a label. Labels are the
//     rule, the kind and words of fixed lists, so 10,000 keys add no series. A rule is
//     what [core.Label] says; acquisitions without one are rule "none", and after
//     [DefaultMaxRules] different rules (see [WithMaxRules]) the others are rule
//     "other".
//   - Known rules exist at zero: the counters of a rule have their series as soon as
//     the rule was compiled or first used. Histograms begin with their first value.
//   - A span shows a hash of the key ([KeyHash]); the key itself only with
//     [WithRawKeys]. The same holds for logs.
//   - A lock that is taken marks no span as an error. A backend failure, a loss, a
//     leak and a failed release do, by error.type and the status.
//   - Logs are for losses, leaks, release failures, backend failures and long waits:
//     at most 10 records per kind in 10 seconds, the next one says how many were
//     suppressed. Never one per call. One record says that Redis became unavailable, with
//     the cause, and one that it is available again.
//
// # Cost
//
// Attribute sets are computed once and looked up without allocation. An acquisition
// with its hold spends about
//
//	0.1 µs  with no-op providers, no allocation
//	0.5 µs  with a metrics SDK, no allocation
//	1.0 µs  with a tracing SDK too, if the trace is not sampled
//	3.5 µs  if it is sampled, of which the SDK itself takes 2.8: two spans with attributes, and exemplars
//
// (BenchmarkLock, one core of an AMD EPYC.) What the last two take more than the
// second is nearly all the tracing SDK's.
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
//	distributed_lock.holder       both     holder field in Redis, "<client id>:<n>"; client.info leads to the pod
//	distributed_lock.reentry      both     true if the context held the lock already
//	distributed_lock.token        hold     fencing token, where the kind has one
//	distributed_lock.attempts     acquire  attempts sent to Redis
//	distributed_lock.blocked_by   acquire  holder field that was in the way, also on the event contended
//	error.type                    both     timeout, redis_error, unavailable, lost, leaked; with status Error
//
//	event           on       meaning
//	contended       acquire  the lock was taken, or others were queued before
//	handed_over     both     received from, or passed to, another caller of this process without Redis choosing
//	renewed_late    hold     the watchdog was late; distributed_lock.late in seconds
//	renewal_failed  hold     the watchdog got no good answer; error.type
//	lost            hold     the lock ended under its holder
//
// # Metrics
//
// Durations are in seconds with buckets from 1 ms to 60 s ([Buckets]; a View replaces
// them). Labels are attributes with the prefix "distributed_lock.". The Prometheus
// exporter writes distributed_lock.wait.duration as
// distributed_lock_wait_duration_seconds, and distributed_lock.lost as
// distributed_lock_lost_total.
//
//	metric                             type           labels                      meaning
//	distributed_lock.wait.duration     histogram      rule kind outcome           time in Acquire, failures too
//	distributed_lock.acquire.duration  histogram      rule kind                   round trip of an uncontended acquisition: is Redis slow?
//	distributed_lock.hold.duration     histogram      rule kind outcome           from acquired to released
//	distributed_lock.waiters           updowncounter  rule kind                   callers that wait now
//	distributed_lock.held              updowncounter  rule kind                   holds that were not released yet, re-entries not counted
//	distributed_lock.oldest_wait       gauge          client.id                   how long the first of the waiting callers has been waiting, seconds
//	distributed_lock.renewals          counter        rule kind outcome           lease renewals: renewed, late, failed
//	distributed_lock.lost              counter        rule kind                   holds that ended under their holder
//	distributed_lock.release.failures  counter        rule kind                   releases that Redis did not confirm
//	distributed_lock.failures          counter        rule kind cause strategy    locks not had or not kept, and what answered
//	distributed_lock.unlocked          counter        rule kind reason            handlers run without their lock: proceed, disabled, dry_run, when
//	distributed_lock.handoffs          counter        rule kind                   locks passed on inside the process
//	distributed_lock.dry_runs          counter        rule kind outcome           what a rule in dry run would have done: acquired, busy, …
//	distributed_lock.rules             updowncounter  state                       compiled rules: enabled, disabled, dry_run
//	distributed_lock.reload            gauge          hash                        when the rule file in force was loaded, Unix time
//	distributed_lock.reloads           counter        outcome                     attempts to take a rule file into force: applied, refused
//	distributed_lock.client.info       gauge          client.id                   1 for each client that is watched
//
// The outcomes of wait.duration are acquired, reentered, busy, debounced, overload,
// backend, key and canceled; those of hold.duration released, left, lost, failed and
// leaked.
package telemetry
