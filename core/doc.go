// Package core takes locks on Redis: the kinds that Redisson has, with its layout and
// its messages. A Java program that uses one of the same name and kind on the same
// Redis is kept out, waits, and is woken like everybody else.
//
//	locks, err := core.New(rdb)
//	…
//	err = locks.Lock("order:42").Do(ctx, func(ctx context.Context) error {
//		return pay(ctx, order)
//	}, core.WaitTime(3*time.Second), core.LeaseTime(10*time.Second))
//
// [Lock.Do] is the usual form: acquire, run, release. [Lock.Acquire] gives a [Hold]
// to release by hand:
//
//	ctx, hold, err := locks.Lock("order:42").Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer hold.Release(ctx) // also when ctx has ended
//	return pay(ctx, order)
//
// Without [WaitTime] an acquisition waits until its context
// ends. Without [LeaseTime] the lease is 30 s and renewed every third of it for as
// long as the process lives and the lock is held: the watchdog.
//
// # Kinds
//
// All of them wait, renew, lose and release in the same way, and what is said below of a
// lock holds for each; what is particular to one is said where it is made.
//
//   - [Client.Lock] is the reentrant lock, [Client.MultiLock] several of them at once.
//   - [Client.FencedLock] has a fencing token with each grant. Other locks of one holder and
//     one name have one on request: [WithToken].
//   - [Client.SpinLock] has no messages, [Client.FairLock] a queue over all processes.
//   - [Client.ReadLock] is held by any number of readers, [Client.WriteLock] by one writer.
//   - [Client.Semaphore] is held by as many as there are permits.
//   - [Client.PlainSemaphore] and [Client.CountDownLatch] are numbers that nobody holds.
//   - [Redlock] is one lock on several independent servers.
//
// Which one to take, with which times, is in examples/choosing/README.md.
//
// # Errors
//
//	error              means
//	ErrNotAcquired     taken for the whole wait time, or the context ended; a *NotAcquiredError
//	                   with how long, and the hint when to retry
//	ErrUnavailable     Redis did not answer, or with an error: neither held nor known to be taken
//	ErrLost            the lock ended under its holder; also the cause with which the context ends
//	ErrReleased        only the cause with which the context of a hold ends at its release
//	ErrNotHeld         released twice, or never held; ErrLost matches it too
//	ErrTooManyWaiters  a limit was reached; nothing was sent
//	ErrClosed          the client was closed
//	ErrInvalid         an argument that cannot be used; nothing was sent, or a count would be too
//	                   large for Redisson, and stays
//
// # What is promised
//
// As long as one Redis master keeps its data (it evicts nothing, and every name is
// used by one kind of lock) and its clock does not step:
//
//   - There is at most one holder; of a read lock there are readers only, of a semaphore as
//     many holders as permits.
//   - A holder whose lease runs out knows before another can hold the lock: the
//     context of the hold ends with the cause [ErrLost]. It counts the lease from the
//     moment of sending, less a margin of 1 % and 2 ms, on the monotonic and on the
//     wall clock.
//   - A lock that was deleted or forced away is known to be lost by the next renewal.
//     A fixed lease is not renewed: its holder finds out when it releases, re-enters
//     or refreshes. A release that passes the lock on (see Runs) does not find out: it returns
//     nil. The next renewal, or the next command of the run, ends the hold that has the lock at
//     that time. Earlier holders of the run have released, and hear nothing.
//   - After Release has returned nil this holder never appears in Redis again. If the release
//     has passed the lock on, the field of this holder stays there until the lock is handed off
//     or freed: it stands for the callers that have the lock after it.
//   - A failed Acquire leaves nothing behind for longer than a second while Redis
//     answers. Neither does a hold whose lease has ended, even if a renewal without an
//     answer has reached Redis.
//   - A waiter finds a free lock within a second, whether or not messages arrive:
//     it is woken by a message, by the end of the lease in the way, or by a poll of
//     at most 1 s.
//   - Callers of one client get a lock in the order in which they came. They have it one
//     after the other in a run, which ends so that other processes get their turns: the turn
//     under way at that time is the last one. If no other client has heard the last release, a
//     run ends after 10 ms or 12 round trips to Redis, and after more such releases in a row
//     after 50 ms or 20 round trips: whichever is longer, 500 ms at most. Beside other clients
//     of this library a run lasts for at least 6 round trips (1 ms to 150 ms). After that it
//     ends with the 16th change of the holder or after 5 ms in all, or after 10 ms if callers
//     that waited when it began have not had their turn. Beside Redisson, and beside clients
//     that are not known yet, it ends with the 16th change or after 5 ms. [Client.MultiLock]
//     says for how long a caller that wants several locks lets others pass.
//   - Between processes it is the turn of the one that has waited longest: it attempts
//     as soon as the lock is freed, and each other one 0.7 ms later for every process
//     before it, and up to 10 ms later than that as long as the first one comes each time.
//     This is a rule that they keep, not one that Redis enforces: a caller with
//     WaitTime(0), or one whose wait is about to end, does not.
//   - Redisson's threads do not know that rule. As many turns as this process has had
//     it leaves to them, one by one, unless they let the lock lie for 3 to 6 ms: two for a
//     single one, and after every fourth run one more.
//   - A waiter that gets no messages, such as one whose ACL lacks the channel, polls
//     every 50 ms and has its turn within two seconds, also beside processes that keep
//     the lock busy: these leave it free for 60 ms every 1.5 s, or for 15 ms where others
//     listen, at a time at which such a waiter polls every 10 ms. (Redisson does not, nor
//     does a caller with WaitTime(0), nor a MultiLock for more than one of its keys. Where
//     clocks differ by more than 20 ms it may take longer.)
//   - The lock of a process that died ends within one lease. A fixed lease may last longer in
//     Redis by the reserve of a hand-off (see Runs): by 100 ms at most, and at most twice as
//     long as the lease.
//   - Nothing is ever freed for somebody else.
//   - Redis that does not answer is [ErrUnavailable] within the backend timeout of
//     1 s ([WithBackendTimeout]): never "taken", and never "acquired". Further
//     callers fail at once until a probe is answered. A command whose connection
//     breaks at the end of that time is made again, and has as much time once more, if
//     Redis answers pings. One that answers slowly is not down: it is waited for within
//     the wait time, and without one, as by a release, for eight backend timeouts at
//     most. One that cannot serve just now (LOADING, BUSY, NOREPLICAS, CLUSTERDOWN) is
//     waited for within the wait time.
//   - An outage leaves at most a few hundred commands a second to clear up, however many
//     attempts it has cut short.
//
// A test judges these promises, core/internal/history: processes take, re-enter, hand over
// and force locks while their network, their Redis and they themselves are cut off, stopped
// and killed, and what they noted is searched for two holders, lost updates, waits that were
// too long and keys that were left. core/internal/model checks them on a model in TLA+, and
// checks recorded runs against this model. Its documentation lists each promise with its
// property, the rule that judges it, and tests.
//
// # Runs
//
// In a run the callers of one client have a lock one after the other, and no other client has it in
// between. Each caller has its own context, [Hold], deadline, re-entries and observations. A release
// gives the lock to the next caller in one of two ways:
//
//   - It passes the lock on, in memory. Redis is not asked, and sees one holder: the next caller has
//     the same field ([Hold.Field]).
//   - It hands the lock off, by one script that puts a fresh field in the place of the old one.
//
// A [Client.Lock] or a [Client.SpinLock] is passed on if the lease that Redis has confirmed suffices for
// the next caller: for the whole of a fixed lease, or for half of a renewed one. A hand-off of a fixed
// lease asks Redis for a reserve, so that later releases can pass the lock on: for 100 ms more, or for
// twice the lease if that is shorter. The deadline of a hold never includes the reserve.
//
// A hand-off takes the place of passing on if
//
//   - the lock is a FencedLock or a WriteLock, or the hold or the next caller has a token ([WithToken]);
//   - Redis was asked for a lease that is longer than the next caller wants, reserve included;
//   - the hold has several keys, or is a [Redlock] on several servers;
//   - a command of the run has no answer and may still be executed, or the count in Redis is being
//     put right;
//   - the client is asking Redis whether it has the lock still, as after a message.
//
// The lock is freed instead, and the next caller acquires it by its own command, if it is a FairLock or
// several callers hold it at a time, if replicas acknowledge it ([WithReplicaAcks]), or if the next
// caller wants several keys.
//
// # What is not promised, and what helps
//
//   - Safety across a failover. Replication is asynchronous: a new master may not
//     know of a lock, and a second holder gets it. What helps: work that does no harm
//     when it is done twice, a condition in the database (a version, a unique key),
//     replicas that acknowledge ([WithReplicaAcks]), which narrow the window, and a Redis
//     that loses fewer writes (min-replicas-to-write). The same goes for
//     FLUSHALL, eviction, and a server that restarts without its data.
//   - Safety when the clock of Redis steps: leases then end early. What helps: NTP that slews.
//   - Exclusion of code that ignores its context. A holder that is paused, or cut off
//     for longer than its lease, loses the lock and is notified by its context; nobody
//     stops it from writing all the same. What helps: check [Hold.Remaining], or Err
//     of the hold's own context, before what cannot be undone. Both compare the clock
//     by themselves, so that a process that was stopped does not go on before a timer
//     has fired; a context with a timeout or cancel of its own, such as an errgroup's,
//     is notified by that timer only.
//   - A lock is not idempotency. It keeps two calls from running at the same time;
//     the second one then runs. Keep what was done already in your database.
//   - Fencing by the lock alone. [Hold.Token] is 0 unless the lock is a [Client.FencedLock]
//     or was acquired [WithToken]; and a token helps only where the store refuses a write
//     with a smaller one than it has seen.
//
// # What the caller does
//
//   - Go on with the context that Acquire returned or Do hands to fn, and pass it
//     down. It carries the ownership: an Acquire of the same lock through the same
//     [Client] with it, or with a context derived from it, re-enters, in whatever
//     goroutine. With any other context it is a stranger's and waits for itself.
//     [Detach] is for work that must not inherit the lock, [Hold.Handover] for work
//     that goes on holding it.
//   - Release every Hold, typically by defer. A Hold that is garbage-collected
//     without that is no longer renewed, is reported to the observers, and its key
//     ends with its lease.
//   - Use one Client per process and Redis. Two clients of one process are strangers
//     to each other.
//   - One lock on several independent servers is a [Redlock], which says what that is worth.
//   - Shut down in order: the server, then [Client.Close], then the Redis client.
//
// Packages ginlock, grpclock and core/aspect do all of this for handlers and
// functions; package redistest is a Redis for tests.
//
// # Cost
//
// An uncontended Acquire is one round trip, and so is Release. Concurrent commands, renewals
// among them, share one connection to each node by pipelining, beside the pool and the Limiter of the
// caller's client. The callers of one client that wait for
// one key cost Redis as much as one of them, and a turn that is passed on in memory costs it
// nothing. A held lock has no goroutine and no
// timer of its own; renewals of one moment travel together. No observer costs
// nothing.
//
// Every method is safe for concurrent use unless its comment says otherwise. The
// package notifies observers ([WithObserver]) and writes no log, but for two things: that
// locks cannot be acquired from Redis any more, and that they can again, unless an
// [Observer] has a function Backend; and the first panic of each function of an observer.
package core
