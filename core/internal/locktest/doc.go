// Package locktest is the kit of the tests of package core. The tests are in package core and in the folders below
// this one. The comment of each folder contains a table: promise → test.
//
//	redis.go      Redis: one server of a test, embedded or real, with clients that connect directly or through a proxy
//	kinds.go      Kinds: one table of all kinds of locks
//	world.go      World: the servers of one kind, a process behind proxies, and a process beside it
//	faults.go     Fault: a fault of one command on its way; Outage: a fault of all connections; matches of scripts
//	redisson.go   Redisson's clients, written by hand: their reads and writes in Redis
//	calls.go      calls that must succeed, and calls in other goroutines
//	load.go       callers that take a lock again and again
//	want.go       assertions
//	observers.go  observers that record
//	times.go      bubbles of package synctest, bounds on real time, concurrent subtests
//	child.go      other processes
//	main.go       Main, for TestMain
//
// The kit uses only the exported API of package core. It takes the names of scripts from package redisstore, but spells
// out the keys of Redisson, so that a change of the layout fails a test.
package locktest
