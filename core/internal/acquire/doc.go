// Package acquire takes locks: from the wish of a caller to the grant. A grant is one [holding.Holder] for each key.
//
// The usual acquisition wants one key. It is an [attempt], whose states are drawn above its type. Several keys
// (multi.go) and several servers (redlock.go) are made of attempts.
//
// An attempt asks three parties: Redis, by a script that grants or refuses ([Redis]); the queue of the key in this
// process, which says whose turn it is (package queue); and the reaper, to which it leaves the field of a command
// without an answer ([Graves]). A grant goes to package holding and is never seen here again. How a kind of lock
// waits is a row of the table in manner.go.
//
// This package knows neither contexts that carry locks ([Config.Carried] looks for them) nor observers nor the
// errors of package core: it returns errors of package failure and [BusyError]. Package core calls it.
package acquire
