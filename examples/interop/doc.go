// Package interop drives the real Redisson through a small Java program in folder java, which acquires and
// releases locks on request. In the tests of this folder it shares a Redis with package core, in both
// directions.
//
// [Build] compiles the program for a version of Redisson. A [JVM] is a process of the program, which a test can
// stop, continue and kill. A [Client] is a Redisson client in such a process. A [Thread] is one of its threads,
// which is a holder for Redisson. [Thread.Start] sends a request to a thread and returns a [Call], whose answer
// contains the times at which the thread started and finished.
package interop
