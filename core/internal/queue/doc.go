// Package queue keeps the waiters and the holders of this process, one queue for each key.
//
// It knows which waiter is first, which holds of this process have the lock, to which waiter a
// release hands the lock over, and when the first waiter leaves the lock to other processes. It
// does not know Redis: packages acquire and holding send the commands and report their outcome here.
// The package is memory only, and no method waits.
//
// A waiter asks [Queues.Next] what to do, does it, and sleeps until its signal or until a time that
// its caller chooses. After that [Queues.Poll] makes the next step an attempt. Only the head of a
// queue attempts. Where several waiters may get in, a few behind the head attempt, too.
//
// The files build on each other, from the bottom to the top:
//
//	turns, giveway, message, evidence, holders    values without locks: what was seen of others, and when it is whose turn
//	past                                          the part of them that is kept when a queue has ended
//	queue                                         the waiters and the holders of one key
//	queues                                        all keys, in shards; limits and inspection
//	waiting, holding, notify                      the way of a waiter; the way of a hold; messages
//
// Every method of [Queues] is safe for concurrent use. The methods that take a [Waiter] belong to
// the goroutine that waits, except [Queues.Handed], [Queues.Passed] and [Queues.NotHanded]. A mutex
// of its shard guards the state of a key. Under it only [Subscription.Confirmed] and
// [Subscription.Dead] are called, which take no mutex.
package queue
