// Package turns tests which waiter is next: the queue of one client, runs and hand-offs, turns between processes and
// beside Redisson, waiters without messages, and the messages themselves. The tests of runs are in package core,
// because they need runs without a time limit.
//
//	promise                                            | tests
//	A waiter finds a free lock                         | TestWaiter_EachKind_NoMessage, TestWait_EndsExactlyWithTheLease, TestWait_MessageWakesAtOnce
//	Callers of one client get a lock in the            | TestQueue_FirstComeFirstServed, TestQueue_BehindAForeignHolder
//	which ends so that other processes get their turns | TestHandOff_RunIsBoundedByCount, TestHandOff_RunIsBoundedByTime, TestHandOff_TwoProcessesShareTheTurns
//	Between processes the turn goes to                 | TestTurns_GoToTheProcessThatHasWaitedLongest, TestTurns_ManyCallersInFourProcesses
//	Redisson's threads do not know this rule           | TestTurns_RedissonHasItsShare, TestWire_RedissonWaiterBesideLocalOnes
//	A waiter that gets no messages                     | TestSilentWaiter_GetsItsTurnBesideBusyOnes, TestSilentWaiter_Polls, TestSilentWaiter_OfAnACLWithoutTheChannel
//	In a run the callers of one client                 | TestRun_EachHolderEntersByItself, TestRun_RandomOperations
//	Callers of a run still pass on, in memory          | TestRun_WhileRedisIsSilent
//	It passes the lock on, in memory                   | TestRun_IsReleasedOnce, TestRun_OfFixedLeases
//	It hands the lock off, by one script               | TestHandOff_IsOneScriptWithoutMessage, TestHandOff_Unanswered
//	The lock is handed off instead if                  | TestRun_EndsWhenRedisHasToBeAsked, TestRun_EndsWithACommandWithoutAnAnswer, TestRun_EndsWithADoubt
//	Callers of one client that wait for one key        | TestQueue_OneContenderPerProcessAndKey, TestQueue_WaitersCostNoConnections
package turns
