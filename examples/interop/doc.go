// Package interop drives the real Redisson: a small Java program, in folder java, that
// takes and frees locks as it is told. The tests beside this file have it share a Redis with
// package core, in both directions.
//
// [Build] compiles the program for one version of Redisson. A [JVM] is a process of it, which a
// test can stop, continue and kill. A [Client] is a Redisson client in such a process, and a
// [Thread] one of its threads, which Redisson takes for a holder. [Thread.Start] has a thread do
// something and gives a [Call], which tells when the thread began and when it was done.
package interop
