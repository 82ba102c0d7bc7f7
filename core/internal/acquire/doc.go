// Package acquire acquires locks. From the [Wish] of a caller it makes one [holding.Holder] for each key.
//
// An acquisition of one key runs one [attempt]. The comment of that type shows its states. An acquisition of several
// keys (multi.go) or on several servers (redlock.go) runs several attempts.
//
// An attempt uses three things. A script in Redis grants or refuses the lock ([Redis]). The queue of the key in this
// process decides which waiter has the next turn (package queue). The reaper clears up the fields of commands without
// an answer ([Reaper]). After a grant the attempt opens a holder in package holding, and has no further part in it. The
// table in manner.go describes how the waiters for each kind of lock wait.
//
// This package does not depend on observers, on the errors of package core, or on how a context carries locks
// ([Config.FindCarried] looks for them). It returns errors of package failure and [BusyError]. Package core calls it.
package acquire
