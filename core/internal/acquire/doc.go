// Package acquire takes locks: it turns the wish of a caller into a grant, one [holding.Holder] for each key.
//
// The usual acquisition wants one key. It is an [attempt], whose states are drawn above its type. Several keys
// (multi.go) and several servers (redlock.go) are made of attempts.
//
// An attempt talks to three parties: Redis, where a script grants or refuses the lock ([Redis]); the queue of the key
// in this process, which decides whose turn it is (package queue); and the reaper, to which it leaves the field of a
// command without an answer ([Graves]). It gives a grant to package holding and does not see it again. The table in
// manner.go describes how each kind of lock waits.
//
// This package does not depend on contexts that carry locks ([Config.Carried] looks for them), observers, or the
// errors of package core. It returns errors of package failure and [BusyError]. Package core calls it.
package acquire
