// Package queue keeps the waiters and the holders of this process in one queue for each key.
//
// It decides which waiter is first, to which waiter a release hands the lock over, and when the first
// waiter stands back, that is, leaves a free lock to other processes. It also tracks the holders of this
// process. Each client has separate [Queues], so another client of the same program counts as another
// process.
//
// The package does not use Redis. Packages acquire and holding send the commands and report the outcomes
// to this package. The package keeps everything in memory. No method waits for anything but a mutex.
//
// A waiter asks [Queues.Next] for its next step. If the step is an attempt, the waiter sends the command
// that acquires the lock. Otherwise the waiter sleeps until its signal, or until a time that its caller
// chooses. At that time the caller calls [Queues.Poll], which makes the head of a queue attempt. Usually
// only the head of a queue attempts. If several waiters may share the lock, waiters after the head attempt
// at the same time.
//
// Each line of this list uses the lines above it:
//
//	turns, giveway, message, evidence, holders    observations of other processes, and whose turn it is; without mutexes
//	past                                          the observations that outlive the queue of a key
//	queue                                         the waiters and the holders of one key
//	queues                                        all keys, in shards; limits and inspection
//	waiting, holding, notify                      the methods for waiters, for holders, and for messages
//
// Every method of [Queues] is safe for concurrent use. Only the goroutine that waits calls the methods
// that take a [Waiter], except [Queues.CompleteHandOff], [Queues.CompletePass] and [Queues.CancelHandOff],
// which the releasing goroutine calls. The keys are divided into shards, and the mutex of a shard guards
// the state of its keys. While the package holds such a mutex, it calls no code of its users except
// [Subscription.Confirmed] and [Subscription.Dead], which lock no mutex.
package queue
