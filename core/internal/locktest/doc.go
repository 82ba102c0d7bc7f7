// Package locktest is the kit of the tests of package core. The tests stand in package core and in the folders below
// this one, each of which has a table in its comment: promise → test.
//
//	redis.go      Redis: one server of a test, embedded or real, with clients beside it and behind a proxy
//	kinds.go      Kinds: one table of all kinds of locks
//	world.go      World: the servers of one kind, a process behind proxies, and a process beside it
//	faults.go     Fault: what happens to one command on its way; Outage: what happens to all; matches of scripts
//	redisson.go   Redisson's clients, written by hand: what they see in Redis and what they do
//	calls.go      calls that must succeed, and calls in other goroutines
//	load.go       callers that take a lock again and again
//	want.go       assertions
//	observers.go  observers that record
//	times.go      bubbles of package synctest, bounds on real time, subtests that run at once
//	child.go      other processes
//	main.go       Main, for TestMain
//
// The kit knows package core by its exported API only. It knows the names of scripts from package redisstore, and the
// keys of Redisson by itself, so that a change of the layout fails a test.
package locktest
