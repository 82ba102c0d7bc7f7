// Package queue keeps the waiters of this process: one queue for each key that is held
// or wanted. It knows who is first, who holds the lock for this process, to whom it can
// be handed over, and when the head leaves it to other processes. It is memory only: the
// caller talks to Redis, and tells the queue what came of it. What it has seen of others it
// remembers for a while when the queue of a key has ended.
//
// Only the head of a queue attempts, and a few behind it where several may have what they wait
// for. A waiter asks [Queues.Next] what to do, does it, and
// sleeps until its signal, or until a time that its caller chooses; after that
// [Queues.Poll] makes the next step an attempt.
//
// Every method is safe for concurrent use; those that take a [Waiter] are for the one
// goroutine that waits, except [Queues.Handed], [Queues.Passed] and [Queues.NotHanded]. The state of a key
// is under the mutex of its shard, under which nothing is called but what reads a
// subscription: [Subscription.Confirmed] and [Subscription.Dead] take no mutex.
package queue
