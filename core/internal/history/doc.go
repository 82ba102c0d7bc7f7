// Package history is a test kit that judges a record of the operations of lock clients. The tests of this package
// call it. It starts nothing and does not depend on Redis.
//
// Workers record every operation with its begin and its end on one clock. They also record each hold as its holder
// saw it: from the return of Acquire to the last moment at which the holder found its context alive. [Judge] reads
// these events and reports violations of the promises of package core: two holders, a lost update, a lock that was
// lost or refused without cause, a wait that took too long, a lock that stayed free beside waiters, remains in
// Redis.
//
// Every event contains the kind of its lock. Reentrant, fair, fenced and spin locks have one holder at a time, and the
// tokens of fenced locks rise from grant to grant. Each value of a group is a separate lock. A hold with a limit is trusted
// no longer than its limit. Readers hold a lock beside other readers, but never beside a writer,
// except inside the write hold of the same owner. A semaphore never has more holders than permits, and at the end it
// has all its permits.
//
// A run consists of the holds with one field: a process passes the lock from caller to caller in memory, and Redis sees
// one holder. The holds of a run never overlap and belong to one process. Together they last no longer than the lease
// of the first hold, unless one of them may have extended it. A force release that came before the grant of a hold
// may still end that hold, if an earlier hold of the run had the field at that time.
//
// The tests have a second judge, Porcupine, which does not use these rules. It receives each lock as a sequential
// specification (reentrant, fenced, read-write, semaphore, fair) and looks for an order of the grants, releases and
// refusals that the specification allows. Only Porcupine judges the order of a fair lock: a waiter whose place Redis
// confirmed gets the lock before a caller that came later. This holds for the first 0.7 s of a wait. In this time
// the lock drops no waiter, however slow the machine is.
//
// The files build on each other: event and log are the record; trace sorts the events for the rules; exclusion,
// leases, holds, waits, wakeups and leftovers are the rules; judge applies them; window prints the events around a
// violation.
//
// The tests run the workers: as processes beside a redis-server that is stopped, killed and cut off, where threads that
// lock like Redisson want one of the locks, and in a synctest bubble on the embedded Redis. A test that fails prints its seed, which repeats the operations and the
// faults, though not the exact interleaving:
//
//	go test -v ./core/internal/history -run Processes   # a few seconds
//	INTERLOCK_HISTORY=60s INTERLOCK_HISTORY_SEED=7 go test -v ./core/internal/history -run Processes
//	INTERLOCK_HISTORY=1h go test -v -timeout 90m ./core/internal/history -run Processes
//	INTERLOCK_HISTORY_BUBBLE=1h go test -v ./core/internal/history -run Bubble
//	INTERLOCK_HISTORY_MUTANTS=1 go test -v ./core/internal/history -run Mutants   # three; all: all of them
//
// With -artifacts the events of a run are kept as files.
//
// # Certain and possible
//
// Outside Redis it is not known exactly when a lock changed hands, so every rule errs on the safe side. Two holders
// are two overlapping intervals that are both certain: each holder returned from Acquire and later found its context
// alive. This needs no margin on one machine, where all processes read the same monotonic clock. A lock counts as free
// only while no operation can have had it. Rules that depend on speed apply only while no fault is near. They allow for
// the time in which the machine stalled: every process records when its ticker was late. Processes that run for only a
// few seconds, as in a plain go test, get an extra minute, because there may be no processor left for them.
package history
