// Package history is a test kit: it judges a record of what lock clients did. Its own tests call it. It starts
// nothing and does not know Redis.
//
// Workers note every operation with its begin and its end on one clock, and how a holder saw its hold: from the
// return of Acquire to the last moment at which it looked at its context and found it alive. [Judge] reads these
// events and reports what contradicts the promises of package core: two holders, a lost update, a lock that ended
// or was refused without cause, a wait that took too long, a lock that stayed free beside waiters, something left
// in Redis.
//
// Every event names the kind of its lock. Reentrant, fair, fenced and spin locks have one holder at a time, and the
// tokens of fenced ones rise from grant to grant. Readers hold beside readers, and never beside a writer, except
// inside their own. A semaphore has no more holders than permits, and all its permits at the end.
//
// A run is the holds of one field: a process passes the lock from caller to caller in memory, and Redis sees one
// holder. The holds of a run never overlap, and belong to one process. Together they last no longer than the lease
// of the first hold, unless one of them may have made it longer. A hold of a run can end because of a force release
// that came before its own grant.
//
// The tests have a second judge, Porcupine, which does not know these rules. It gets each lock as a sequential
// specification (reentrant, fenced, read-write, semaphore, fair) and looks for an order of the grants, releases and
// refusals that the specification allows. Only Porcupine judges the order of a fair lock: a waiter whose place Redis
// has confirmed gets the lock before a caller that came later. This holds for the first 0.7 s of a wait. In this time
// the lock drops no waiter, however slow the machine is.
//
// The files build on each other: event and log are the record; trace sorts the events for the rules; exclusion,
// leases, holds, waits, wakeups and leftovers are the rules; judge applies them; window prints the events around a
// violation.
//
// The tests run the workers: as processes beside a redis-server that is stopped, killed and cut off, and in a
// synctest bubble on the embedded Redis. A test that fails prints its seed, which repeats the operations and the
// faults, though not the exact interleaving:
//
//	go test -v ./core/internal/history -run Processes   # a few seconds
//	INTERLOCK_HISTORY=60s INTERLOCK_HISTORY_SEED=7 go test -v ./core/internal/history -run Processes
//	INTERLOCK_HISTORY_BUBBLE=1h go test -v ./core/internal/history -run Bubble
//	INTERLOCK_HISTORY_MUTANTS=1 go test -v ./core/internal/history -run Mutants   # three; all: all of them
//
// With -artifacts the events of a run are kept as files.
//
// # Certain and possible
//
// Outside Redis it is not known exactly when a lock changed hands, so every rule leans to the safe side. Two holders
// are two intervals that are both certain: each holder had returned from Acquire, and later found its context alive.
// This needs no margin on one machine, where all processes read the same monotonic clock. A lock is free only while
// no operation can have had it. Rules that depend on speed apply only while no fault is near. They allow for the time
// in which the machine itself stood still: every process notes when its own ticker came late. Processes that run for
// a few seconds only, as in a plain go test, get a minute more, because there may be no processor left for them.
package history
