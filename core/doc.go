// Package core takes locks on Redis:
//
//	locks, err := core.Open("redis://localhost:6379") // or core.New, with the go-redis client of the program
//	if err != nil {
//		return err
//	}
//	err = locks.Lock("order:42").Do(ctx, func(ctx context.Context) error {
//		return pay(ctx, order) // use this ctx: it carries the lock, and ends if the lock is lost
//	}, core.WaitTime(3*time.Second))
//	if errors.Is(err, core.ErrNotAcquired) {
//		return errors.New("another process is paying this order")
//	}
//	return err
//
// [Lock.Do] is the usual form: acquire, run, release. [Call] is Do for a function that returns a value:
//
//	receipt, err := core.Call(ctx, locks.Lock("order:42"), charge, core.WaitTime(3*time.Second))
//
// [Lock.Acquire] returns a [Hold], which the caller releases:
//
//	ctx, hold, err := locks.Lock("order:42").Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer hold.Release(ctx) // even if ctx is done
//	return pay(ctx, order)
//
// Without [WaitTime] an acquisition waits until its context is done. Without [LeaseTime] the lease is 30 s
// ([WithWatchdog]). The watchdog renews it each time that a third of it has passed, while the process is alive and holds
// the lock. [MaxHold] limits the time for which the watchdog does so. [Client.Close] ends a client. Packages ginlock,
// grpclock and core/aspect take locks by rules, around handlers and functions.
//
// The rest of this comment is the contract. The package implements the kinds of locks that Redisson has, with the same
// layout and messages. A Java program that uses a lock of the same name and kind on the same Redis is excluded, waits, and
// is woken like any other client.
//
// # Kinds
//
// Waiting, renewal, loss and release are the same for all kinds, and the sections below apply to all of them. The
// comment of each function describes the differences of its kind.
//
//   - [Client.Lock] is the reentrant lock. [Client.MultiLock] takes several of them at once.
//     [Client.NonReentrantLock] refuses a second acquisition by its holder.
//   - [Client.GroupLock] takes several values of a group at once, in one hash.
//   - [Client.FencedLock] returns a fencing token with each grant. Every other lock
//     that has one name, one client and one holder at a time returns a token on request: [WithToken].
//   - [Client.SpinLock] polls and publishes no message. [Client.FairLock] has one queue for all processes.
//     [Client.NonReentrantFairLock] refuses a second acquisition by its holder.
//   - [Client.ReadLock] has any number of readers. [Client.WriteLock] has one writer.
//   - [Client.Semaphore] has as many holders as permits.
//   - [Client.PlainSemaphore] and [Client.CountDownLatch] are numbers without holders.
//   - [Redlock] is one lock on several independent servers.
//
// See examples/choosing/README.md for the choice of a kind and of times.
//
// # Errors
//
//	error              means
//	ErrNotAcquired     the lock remained taken for the whole wait time, or the context ended; a *NotAcquiredError
//	                   contains the time spent and the time until a retry may succeed
//	ErrUnavailable     Redis did not answer, or answered with an error: the lock is neither held nor known to be taken
//	ErrLost            the holder lost the lock before it released it; also the cause of the context of that hold
//	ErrHeldTooLong     the hold lasted for longer than its MaxHold; ErrLost matches it too
//	ErrReleased        only the cause of the context of a hold, after its release
//	ErrNotHeld         the hold was released twice, or never held; ErrLost matches it too
//	ErrTooManyWaiters  a limit was reached; nothing was sent
//	ErrClosed          the client was closed
//	ErrInvalid         an argument cannot be used, and nothing was sent; or a count would become too
//	                   large for Redisson, and was not changed
//
// # What is promised
//
// The promises apply while one Redis master keeps its data, its clock does not step, and every name is used for one
// kind of lock. (A master that evicts keys does not keep its data.)
//
//   - A lock has one holder at most. A read lock has readers only, and a semaphore at most as
//     many holders as permits.
//   - A holder learns of the end of its lease before another client can acquire the lock: the
//     context of the hold ends with the cause [ErrLost]. The client counts the lease from the
//     time at which it sends the command, on the monotonic and on the wall clock. It subtracts a margin
//     of 1 % and 2 ms, at most half of the lease. With Java, a [Client.GroupLock] also needs clocks that agree.
//   - If a lock is deleted or forced away, its holder learns of the loss at the next renewal. A fixed lease is not
//     renewed: its holder learns of the loss when it releases, re-enters or refreshes. With [WithLossNotice], and keyspace
//     notifications on the server, a hold that has lasted for two seconds ends within milliseconds. A release that
//     passes the lock on (see Runs) returns nil without asking Redis. If the lock had been deleted, the next renewal or
//     command of the run detects the loss and ends the hold of the caller that has the lock at that time. Earlier
//     holders of the run are not notified.
//   - After Release has returned nil, the holder never appears in Redis again. If the release
//     passed the lock on, the field of the holder stays in Redis until the lock is handed off or
//     freed. Until then the field belongs to the later callers of the run.
//   - While Redis answers, a failed Acquire leaves nothing behind for longer than a second. Neither
//     does a hold whose lease has expired, even if an unanswered renewal reached Redis.
//   - A waiter finds a free lock within a second, whether or not messages arrive: the waiter wakes
//     at a message, at the end of the holder's lease, and at least once a second. The comment of
//     [Client.FairLock] says how long a stopped waiter delays the waiters behind it.
//   - Callers of one client get a lock in the order in which they came. They hold it one after the other in a run,
//     which ends so that other processes get their turns. If Redisson or an unknown client also wants the lock, a run
//     ends after 5 ms or 16 changes of the holder. If only other clients of this library want the lock, a run ends
//     after 150 ms at the latest. If no other client receives the messages of the lock, a
//     run ends after 500 ms at the latest. The caller that has
//     the lock at that time is the last one of the run. The comment of [Client.MultiLock] says how long a caller that
//     wants several locks lets others pass.
//   - Between processes the turn goes to the process that has waited longest. That process tries
//     to acquire the lock as soon as the lock is freed. The other processes try some milliseconds later.
//     Processes of this library follow this rule; Redis does not enforce it. A caller with
//     WaitTime(0), or one whose wait is about to end, does not follow it.
//   - Redisson's threads do not know this rule. After a run of n turns, a process leaves the
//     next n turns to them, at least two, unless they leave the lock free for 3 to 6 ms.
//   - A waiter that gets no messages, for instance because its ACL lacks the channel, polls every 50 ms. It gets its
//     turn within two seconds even if other processes keep the lock busy, because they leave the lock free for up to
//     60 ms every 1.5 s. Redisson and callers with WaitTime(0) do not leave the lock free, and a MultiLock leaves only
//     one of its keys free. So the two seconds are not promised if such clients keep the lock busy, if the waiter is a
//     MultiLock that waits for several busy keys, or if clocks differ by more than 20 ms.
//   - The lock of a process that died is free when its lease in Redis has ended. In a run, a fixed lease in Redis
//     may be longer than requested by at most 100 ms, or by its own length if that is shorter (see Runs).
//   - A client frees only locks that it holds. Only [Lock.ForceRelease], [Client.Evict] and
//     [Semaphore.ReleasePermit] take a lock from others.
//   - If Redis does not answer, the error is [ErrUnavailable] within the backend timeout of 1 s ([WithBackendTimeout]).
//     The lock is not reported as taken, and Redis grants no lock. Callers of a run still pass on, in memory, the lock that
//     is held in Redis, until the run ends: for half a second at the latest (see Runs). Further callers fail at once until
//     Redis answers a ping of the client. If a connection breaks at the end of the timeout while Redis answers pings, the
//     command is sent again, with the same time limit. A Redis that answers slowly counts as available: an operation
//     waits for the answer until its wait time ends. An operation without a wait time, such as a release, waits for at most
//     eight backend timeouts. While Redis answers that it cannot serve (LOADING, BUSY, NOREPLICAS, CLUSTERDOWN), an
//     acquisition repeats its command until its wait time ends.
//   - After an outage a client sends at most a few hundred commands a second to clear up, however many
//     attempts the outage cut short.
//
// Package core/internal/history tests these promises. Processes take, re-enter, hand over and force locks while faults
// cut the network and stop or kill Redis and the processes. The package searches the records of the processes for two
// holders, lost updates, waits that were too long and keys that were left behind. Package core/internal/model checks
// the promises on a model in TLA+, and checks recorded runs against this model. The documentation of package model
// lists each promise with its property, its rule in package history, and tests.
//
// # Runs
//
// In a run the callers of one client have a lock one after the other, and no other client has it in
// between. Each caller has its own context, [Hold], deadline and re-entries, and observers see each
// of the holds. A release gives the lock to the next caller in one of two ways:
//
//   - It passes the lock on, in memory. Redis is not asked, and sees one holder: the next caller has
//     the same field ([Hold.Field]).
//   - It hands the lock off, by one script that replaces the old field by a new one.
//
// A [Client.Lock] or a [Client.SpinLock] is passed on if the lease that Redis confirmed suffices for the next caller:
// for the whole of a fixed lease, or for half of a renewed one. A hand-off of a fixed lease asks Redis for a longer
// lease, so that later releases can pass the lock on. This reserve is 100 ms, or the length of the lease if that is
// shorter. The deadline of a hold never includes the reserve.
//
// The lock is handed off instead if
//
//   - it is a FencedLock or a WriteLock, or the hold or the next caller has a token ([WithToken]);
//   - Redis was asked for a lease that is longer than the next caller wants, reserve included;
//   - the hold has several keys, or is a [Redlock] on several servers;
//   - a command of the run has no answer and may still be executed, or the count in Redis is being
//     corrected;
//   - the client is asking Redis whether it still has the lock, for instance after a message.
//
// In other cases the lock is freed, and the next caller acquires it by its own command: if it is a FairLock, if several
// callers hold it at a time, if replicas acknowledge it ([WithReplicaAcks]), or if the next caller wants several keys.
//
// # What is not promised, and what helps
//
//   - Safety across a failover. Replication is asynchronous: a new master may lack
//     a lock and grant it to a second holder. What helps: work that does no harm
//     when it is done twice; a condition in the database (a version, a unique key);
//     replicas that acknowledge ([WithReplicaAcks]), which make the window smaller; and a Redis
//     that loses fewer writes (min-replicas-to-write, or a durable service: see
//     examples/operating/README.md). The same applies to
//     FLUSHALL, eviction, and a server that restarts without its data.
//   - Safety when the clock of Redis steps: leases then end early. What helps: NTP that slews.
//   - Safety when a process is copied while it has a lock or acquires one: two processes that are restored from one
//     snapshot of a running machine both go on as its holder. Locks that they acquire later exclude each other, although
//     both have the same [Client.ID]. What helps: create the Client after the restore, or take the snapshot while it has no
//     hold and no caller acquires.
//   - Exclusion of code that ignores its context. A holder that is paused, or cut off for longer than its lease, loses
//     the lock and is notified by its context, but nothing keeps it from writing. What helps: check [Hold.Remaining],
//     or Err of the hold's own context, before work that cannot be undone. Both compare the deadline of the lock with
//     the clock at each call, so they report the loss even if the process was stopped and the timer of the hold has not
//     fired yet. A context that is derived with a timeout or a cancel function, such as the context of an errgroup, is
//     canceled only when that timer fires.
//   - A lock is not idempotency. It keeps two calls from running at the same time, but the second
//     call still runs after the first one. Record finished work in your database.
//   - Fencing by the lock alone. [Hold.Token] is 0 unless the lock is a [Client.FencedLock]
//     or was acquired [WithToken]. A token helps only if the store refuses a write
//     with a smaller token than the largest that it has seen. Package fence is the store's part.
//
// # What the caller does
//
//   - Continue with the context that Acquire returned or Do passes to fn, and pass it down. It
//     carries the lock: an Acquire of the same lock through the same [Client] with this context, or
//     with a context derived from it, re-enters, in whatever goroutine. With any other context,
//     Acquire waits for the caller's own hold. [Detach] is for work that must not inherit the lock,
//     [Hold.Handover] for work that continues to hold it.
//   - Release every Hold, typically by defer. If a Hold is garbage-collected before that, its renewal stops, the
//     observers are notified, and its key expires with its lease. The garbage collector finds a renewed Hold only after
//     its first renewal, and never while its context, or one derived from it, is in use.
//   - Use one Client per process and Redis. Two clients of one process exclude each other like clients
//     of two processes.
//   - Before you use one lock on several independent servers, read the limits in the comment of
//     [Redlock].
//   - Shut down in order: the server, then [Client.Close], then the Redis client.
//
// Packages ginlock, grpclock and core/aspect do all of this for handlers and
// functions. Package redistest is a Redis for tests.
//
// # Cost
//
// Without contention, Acquire is one round trip, and so is Release. Concurrent commands, including renewals, share one
// connection to each node by pipelining, beside the pool and the Limiter of the caller's client. Callers of one client
// that wait for one key cost Redis as much as a single waiter, and a turn that is passed on in memory costs Redis
// nothing. All held locks of a client share one goroutine and one timer. A hold with [MaxHold] also has a separate
// timer. Renewals that are due at the same time are sent together. Without an observer, observation costs nothing.
//
// Every method is safe for concurrent use unless its comment says otherwise. The
// package notifies observers ([WithObserver]). It writes to the log only
//
//   - that locks can no longer be acquired from Redis, and later that they can again, unless an
//     [Observer] has a function Backend;
//   - that a key holds something that is not a lock, at most once in 10 s, unless an [Observer] has a
//     function AcquireEnd;
//   - the first panic of each function of an observer.
package core
