// Package queue keeps the waiters and the holders of this process in one queue for each key.
//
// It decides which waiter is first, to which waiter a release hands the lock over, and when the first
// waiter leaves the lock to other processes. It tracks the holds of this process. It
// does not depend on Redis: packages acquire and holding send the commands and report their outcome
// here. The package keeps everything in memory. No method blocks.
//
// A waiter asks [Queues.Next] for its next step, takes it, and sleeps until its signal or until a time
// that its caller chooses. After that [Queues.Poll] turns the next step into an attempt. Only the head of
// a queue attempts. Where several waiters may get in, a few waiters behind the head attempt as well.
//
// The files build on each other, from the bottom to the top:
//
//	turns, giveway, message, evidence, holders    values without mutexes: observations of other processes; whose turn it is
//	past                                          the part of them that outlives the queue of a key
//	queue                                         the waiters and the holders of one key
//	queues                                        all keys, in shards; limits and inspection
//	waiting, holding, notify                      the methods for waiters, for holds, and for messages
//
// Every method of [Queues] is safe for concurrent use. The methods that take a [Waiter] belong to
// the goroutine that waits, except [Queues.Handed], [Queues.Passed] and [Queues.NotHanded]. A mutex
// of its shard guards the state of a key. While the package holds it, it calls only
// [Subscription.Confirmed] and [Subscription.Dead], which take no mutex.
package queue
