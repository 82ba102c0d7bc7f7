// Package lockz serves a page of the locks of one process, like net/http/pprof for locks. The page shows which caller
// holds which lock and since when, which callers wait, callers that wait for each other in a ring, refused and lost
// locks, and the keys that are acquired most. It shows no rates or histograms: these are metrics of package
// telemetry, to which [WithDashboardURL] links each rule.
//
//	page, err := lockz.New()
//	locks, err := core.New(rdb, core.WithObserver(page.Observer()))
//	guard, err := ginlock.New(locks)   // uses the observers of locks; so do grpclock and aspect
//	admin.Handle("/debug/locks", page) // in Gin: engine.Any("/debug/locks", gin.WrapH(page))
//
// With package telemetry, write core.WithObserver(tel.Observer(), page.Observer()). If telemetry gets a meter provider
// by an option, pass the same provider to [WithMeterProvider].
//
// # Mount it behind authentication
//
// The page has no login, and no package mounts it by default. It names rules, clients, trace ids and hashes of keys,
// and with [WithRawKeys] the keys. Mount it where only operators have access, for example on the port of the metrics,
// or behind a middleware that authenticates. All links are queries, so the page works under any path, behind
// [http.StripPrefix] and behind a proxy. A page shows only its own process, so ask each process, or use [WithFleet].
//
// # Sections
//
//	section      content                                                                      kept
//	Deadlocks    rings of callers, each of which waits for the next one's lock                until they end; the last 200 that ended
//	Held         rule, key, holder, since, lease left, re-entries, token                      until the hold ends
//	Waiting      in order: how long, blocked by which holder, holding what                    until the wait ends
//	Hottest keys the 20 keys acquired most, from a sketch of 1,000                            since the page was made
//	Lost, …      lost, held too long, left, leaked, not released or renewed, unlocked, freed  the last 200 of each
//	Refused      outcome, rule, key, wait, holder that had the lock, trace                    the last 200 of each outcome
//
// The page lists the last 20 of each outcome or incident; JSON lists all that are kept. The page has one row for all
// waiters of a key; JSON lists each waiter.
//
// The title names the service ([WithService]), the host, the process, and the Redis of each client that the page
// observes. Each request of the page asks these servers whether they answer. The ids of these clients are at the top
// of the page and are omitted from holder fields. Trace ids are links with [WithTraceURL].
//
// The page reloads its data every two seconds and shows how old the data is. If the process does not answer, answers
// with an error, or was replaced by another process, the page reports that, loses its colors and shows the last data
// that it received.
//
// A key is shown as its [core.KeyHash]; [WithRawKeys] shows it whole. Text from outside, such as keys, rules and
// holder fields, is cut, and unprintable characters are escaped.
//
// Callers of one client pass a lock on in memory, under one holder field ([core.Hold.Field]). The page shows the hold
// that has the lock now and the time at which this hold got it, which is later than the field's appearance in Redis.
// An event names the field; its rule, time and trace identify the hold.
//
// A waiter is a caller of this process that found its lock taken. Its position counts only the waiters of this
// process. The page shows the waiter as blocked by the hold of this process that has the lock. If no such hold is
// known, the page shows the holder field that refused the first attempt. The remaining lease is counted from the
// acquisition or from the last renewal that was observed.
//
// # Deadlocks
//
// A ring closes only when a caller whose context carries locks ([core.HoldsOf]) starts to wait. The page then searches
// for a ring, whether or not a browser shows the page. A ring that lasts for two seconds is a deadlock. It is logged,
// counted in distributed_lock.deadlocks (Prometheus: distributed_lock_deadlocks_total, no labels), and marked on the
// page until it ends. A shorter ring is not reported. It ends by itself, because one of its callers only tries to get
// the lock, or waits only briefly. For each caller, the record contains the lock that the caller waits for and, in
// holds_rules, the rules of the locks that the caller holds. The first of these is usually the rule of the endpoint.
// The page does not break up a deadlock. The ring ends when the wait of one of its callers times out.
//
// The page sees only the callers of this process, and only the locks that a caller's context carries. It learns that
// two clients use the same Redis when a hold of one client refuses a caller of the other. Until then it treats equal
// keys of the two clients as different locks, as they would be in different servers or databases. A wait for a
// semaphore is never part of a ring, because any holder may return a permit. A reader that queues behind a writer of
// this process waits for the readers that hold the lock, like the writer. Several goroutines may share a context that
// carries a lock. If the goroutine that uses the lock does not wait for the others, a ring through this lock is
// reported although it is not a lasting deadlock. A search stops after 256 callers.
//
// # Release by force
//
// Buttons appear only with [WithAuthorizer], whose function checks each request. A request that the function does not
// allow gets a page without buttons, or 403 for a POST. Two checks keep other sites from pressing a button in the
// browser of an operator. [http.CrossOriginProtection] checks Sec-Fetch-Site and Origin; it accepts requests that have
// neither. In addition, each button has a sealed ticket, which only the page of an operator contains and which is
// valid for 15 minutes. If a proxy rewrites Host and the browser speaks plain HTTP, Origin proves nothing. Then the
// ticket must match the cookie interlock-locks, which the page sets for this site only (SameSite=Strict).
//
// The ticket carries the key, which the page may hide, and the holders that were shown: only they lose the lock. A
// hold of this process may pass the lock on after it was shown. The next hold has the same field, but keeps the lock.
// Of a holder in another process, only the field is known. If that process passes the lock on before Redis executes
// the release, the next caller with the field loses the lock. A button shows the key, the holders and the time for
// which each has held the lock. A lock in Redis with more holders than the page shows has no button.
//
// [core.Client.Evict] takes the lock from the holders and notifies the waiters. A holder in this process loses the
// lock at once, and its observers are notified. A holder in another process finds out at its next renewal or, if its
// lease is fixed, when it releases the lock. The page logs the operator ([WithOperator]) and the holders that lost the
// lock, and keeps the release as an incident.
//
// # Logs
//
//	message                                        level  keys
//	deadlock: callers wait for each other's locks  ERROR  callers caller_1.rule caller_1.kind caller_1.waits_for_hash [caller_1.waits_for] caller_1.blocked_by caller_1.holds_rules
//	lock released by force                         WARN   operator key_hash [key] kind lost_by
//	lock not released by force                     ERROR  operator key_hash [key] kind held_by error
//
// With [WithRawKeys] the keys in brackets replace the hashes. There is a group caller_1, caller_2, … for each caller of the
// ring, with trace_id if its trace is known. rule is the rule with which it waits, holds_rules are the rules of the locks
// that it holds, and blocked_by is the field of the holder that blocks it. At most 10 records of deadlocks are written in
// 10 seconds; suppressed is the number of records that were not.
//
// # JSON
//
// With the query format=json or the header Accept: application/json, the answer is a JSON document with the data of the
// page, or of the fleet view with fleet=1. A failure is a problem document (RFC 9457). Names of fields are stable;
// new fields may be added.
//
//	query   meaning
//	rows    how many holds and waiters are listed: at most 10,000, by default 1,000, on the page 100
//	q       a text that the listed rows must show, in upper or lower case
//	sort    the order of the rows: key, rule, lease or waiting; by default the oldest is first
//	prefix  with fleet=1 and [WithRawKeys]: the prefix of the listed keys; by default the client's prefix
//	client  with fleet=1: the id of the client that asks Redis; by default the first client
//	cursor  with fleet=1: where the list continues, from the previous part
//	limit   with fleet=1: how many keys are read: at most 10,000, by default 1,000
//
// # Cost
//
// The page spends about 1 µs on an acquisition and its hold, and up to 4 µs if they wait among thousands, in two or
// three allocations (BenchmarkObserve). Each mutex is held only briefly, and never during I/O; the table of holds and
// waiters has 64 parts, each with its own mutex. If the sketch of hot keys is busy, an acquisition is not counted
// there. A request of the page with 10,000 waiters takes 15 to 60 ms (BenchmarkPage).
//
// A hold or a waiter takes about 400 bytes and its key until it ends. An event takes about 300 bytes and its key; the
// page keeps 200 events of each outcome or incident.
package lockz
