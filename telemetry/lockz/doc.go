// Package lockz is a page of the process's own locks, like net/http/pprof for locks: who
// holds what since when, who waits for whom, which callers wait for each other in a ring, what
// was refused and lost, and which keys are hot. Rates and histograms of rules are metrics (package
// telemetry): with [WithDashboardURL] the name of a rule leads to them.
//
//	page, err := lockz.New()
//	locks, err := core.New(rdb, core.WithObserver(page.Observer()))
//	guard, err := ginlock.New(locks)   // has the observers of locks; likewise grpclock, aspect
//	admin.Handle("/debug/locks", page) // in Gin: engine.Any("/debug/locks", gin.WrapH(page))
//
// Beside package telemetry write core.WithObserver(tel.Observer(), page.Observer()), and a provider that
// telemetry was given by an option the page needs too, by [WithMeterProvider].
//
// # Mount it behind authentication
//
// The page has no login of its own, and nothing is mounted by default. It names rules,
// clients, trace ids and hashes of keys, with [WithRawKeys] the keys: mount it where only
// operators come, such as on the port of the metrics or behind the middleware that checks who
// asks. It works under any path, also behind [http.StripPrefix] and a proxy, because its links
// are queries. Each process shows what it knows; ask each one, or use [WithFleet].
//
// # What is shown
//
//	section      what                                                          kept
//	Deadlocks    rings of callers, each of which waits for the next one's lock  while they last, and the last 200 that are over
//	Held         rule, key, holder, since, lease left, re-entries, token        while it is held
//	Waiting      in order, for how long, blocked by whom, what it holds         while it waits
//	Hottest keys the 20 keys acquired most, of a sketch of 1,000                since the page was made
//	Lost, …      lost, left, leaked, not released or renewed, unlocked, freed   the last 200 of each kind
//	Refused      outcome, rule, key, wait, who was in the way, trace            the last 200 of each outcome
//
// The page lists the last 20 of each kind and outcome, JSON all that are kept. The page has one row
// for all waiters of a key, JSON lists each waiter.
//
// The title names the service ([WithService]), the host, the process, and the Redis of each client that
// the page observes. Each request of the page asks these whether they answer. A holder field of such a client is
// shown without the id of the client, which is at the top. Trace ids are links with [WithTraceURL].
//
// The page renews itself every two seconds and says how old it is. When the process does not answer,
// answers with an error, or is gone and another one answers, the page says so and loses its colors:
// it then shows what was.
//
// A key is shown as its [core.KeyHash], and whole only with [WithRawKeys]. Text from outside,
// such as keys, rules and holder fields, is cut, and what does not print is escaped.
//
// Callers of one client pass a lock on in memory, under one holder field ([core.Hold.Field]). The page
// shows the hold that has the lock now, since when this hold has it, and not since when the field is in
// Redis. An event names the field, and with its rule, time and trace the hold.
//
// Waiting is who found a lock taken in this process; its place is that among the callers of
// this process. Who is in the way is the hold of this process that has the lock, or else the
// holder field that the first refused attempt saw. The lease left is counted from the
// acquisition or the last renewal that was observed.
//
// # Deadlocks
//
// Only a caller that begins to wait while its context carries locks ([core.HoldsOf]) can close a
// ring. The page looks for a ring then, whether it is open or not. A ring that lasts for two seconds
// is a deadlock: it is logged, counted in distributed_lock.deadlocks (Prometheus:
// distributed_lock_deadlocks_total, no labels), and marked on the page for as long as it lasts. A
// shorter ring is not reported: it ends by itself, because a caller only tries or waits for a moment.
// The record has, for each caller, what it waits for, and in holds_rules the rules of what it holds;
// the first is mostly the rule of its endpoint. Nothing is broken up: the ring ends when the wait
// time of a caller does.
//
// Only callers of this process are seen, and of a caller only what its context carries. Clients of one
// Redis are seen together once a client was refused because of a holder of another; equal keys in
// different servers or databases are different locks. A semaphore keeps no caller waiting here, because
// any of its holders may give a permit back. A reader behind a writer of this process waits for the
// readers that hold the lock, as the writer does. If several goroutines share a context that carries a
// lock, and the holder of that lock does not wait for them, a ring through it is reported although it
// is not a deadlock for good. A search ends after 256 callers.
//
// # Release by force
//
// Only with [WithAuthorizer], whose function decides about each request; to others no button
// is shown, and a POST is 403. Two things keep other sites from pressing it in the browser of
// an operator. [http.CrossOriginProtection] looks at Sec-Fetch-Site and Origin, and lets requests
// through that have neither. A sealed ticket in each button lasts for 15 minutes, and is only in the
// page of an operator. Where a proxy rewrites Host and the browser speaks plain HTTP, Origin says
// nothing here: then the ticket has to fit the cookie interlock-locks, which the page has set in the
// browser for this site only (SameSite=Strict). The ticket also carries the key, which the page need
// not show, and the holders that were shown: only these lose the lock. If a hold of this process has passed
// the lock on since it was shown, the next hold has the same field, and keeps the lock. Of a holder in
// another process only the field is known, and any hold there may have passed the lock on while the button was
// on its way: the caller that has the lock under this field then loses it. A button
// names the key, the holders, and for how long each has held it; a lock in Redis with more holders
// than are shown has none.
// [core.Client.Evict] takes it, and notifies the waiters. A holder in this process finds out at
// once, and its observers are notified of the loss. A holder elsewhere finds out at its next renewal or,
// if its lease is fixed, when it releases. The operator ([WithOperator]) and the holders that lost the
// lock are logged, and kept among the incidents.
//
// # Logs
//
//	message                                        level  keys
//	deadlock: callers wait for each other's locks  ERROR  callers caller_1.rule caller_1.kind caller_1.waits_for_hash [caller_1.waits_for] caller_1.blocked_by caller_1.holds_rules
//	lock released by force                         WARN   operator key_hash [key] kind lost_by
//	lock not released by force                     ERROR  operator key_hash [key] kind held_by error
//
// With [WithRawKeys] the keys in brackets take the place of the hashes. There is a group caller_1,
// caller_2, … for each caller of the ring, with trace_id if its trace is known: rule is that by
// which it waits, holds_rules are those of what it holds, blocked_by is the holder field in its way.
// Of deadlocks at most 10 records are written in 10 seconds; suppressed says how many were not.
//
// # JSON
//
// With the query format=json, or the header Accept: application/json, the answer is a
// document of the numbers of the page, or with fleet=1 of the whole fleet, and a failure a problem document (RFC 9457). The names of
// fields are stable; new ones may come.
//
//	query   says
//	rows    how many holds and waiters are listed: 10,000 at most, by default 1,000, on the page 100
//	q       a text that the listed rows have in what is shown of them, in whatever case
//	sort    what rows are sorted by: key, rule, lease or waiting; by default the oldest come first
//	prefix  with fleet=1 and [WithRawKeys]: what the keys begin with; by default the client's prefix
//	client  with fleet=1: the id of that which Redis is asked through; by default the first one
//	cursor  with fleet=1: where the list goes on, from the part before
//	limit   with fleet=1: how many keys are looked at: 10,000 at most, by default 1,000
//
// # Cost
//
// An acquisition and its hold spend about 1 µs here, and up to 4 µs when they wait among thousands,
// in two or three allocations: see BenchmarkObserve. The mutexes on the
// way guard one of 64 parts of a table, or the end of a ring, for a moment; none is held while
// something is written or sent. An acquisition that finds the sketch of hot keys busy is not counted there. A page with 10,000 waiters takes 15 to 60 ms: see
// BenchmarkPage.
//
// A hold and a waiter take about 400 bytes and the key each, until they end. The page keeps 200 events of each kind and
// outcome: about 300 bytes and the key each.
package lockz
