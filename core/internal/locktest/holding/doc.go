// Package holding tests a hold from its grant to its end: release, refresh, leave, handover, re-entries that end, leases
// on two clocks, the watchdog, loss, leaks, Close, and what observers of holds see.
//
//	promise                                                             | tests
//	A holder learns of the end of its lease                             | TestDeadline_CountsFromTheSending, TestHold_FixedLeaseExpires, TestHold_EachKind_Partition
//	on the monotonic and on the wall clock                              | TestWatchdog_WallClockJumpClosesDone, TestHold_ErrLooksAtTheClock, TestHold_ReleaseLooksAtTheClock
//	If a lock is deleted or forced away                                 | TestHold_EachKind_DeletedForcedOrTaken, TestWatchdog_ForcedLockIsNoticedByMessage
//	With [WithLossNotice], and                                          | TestLossNotice_EachKind, TestLossNotice_ReconnectAsks, TestLossNotice_ServerWithoutNotifications
//	the holder never appears in Redis again                             | TestHold_EachKind_OperationLandsLate, TestRelease_OfAStolenLockIsALoss
//	a hold whose lease has expired                                      | TestHold_LeaseRaisedWithoutAnAnswer, TestWatchdog_SurvivesThreeFailedRenewals
//	A client frees only locks that it holds                             | TestRelease_EachKind_TwiceOrLate, TestRelease_Unanswered
//	The lock of a process that died                                     | TestHold_PausedProcess, TestHold_EachKind_PausedProcess
//	without a wait time, such as a release                              | TestRelease_Unanswered, TestRelease_UnansweredAfterALongerLease, TestRelease_BehindASlowCommandHasItsFullTime
//	the holder lost the lock before it                                  | TestHold_OperationsOfALostLock, TestRefused_LostBeforeTheResend
//	the hold lasted for longer than its MaxHold                         | TestMaxHold_EachKind, TestMaxHold_EachKind_ReleaseFreesAtOnce, TestMaxHold_Reentry
//	only the cause of the context of a hold, after its release          | TestRelease_EndsTheContextWithErrReleased
//	released twice, or never held                                       | TestRelease_ConcurrentCallsReleaseOnce, TestRelease_EachKind_TwiceOrLate
//	[Hold.Handover] for work                                            | TestHandover_MovesTheHold, TestHandover_LossEndsTheNewContext
//	If a Hold is garbage-collected                                      | TestLeak_OfARenewedHold, TestLeak_NotWhileAContextIsAlive
//	Shut down in order                                                  | TestClose_WaitsForHolds, TestClose_HoldsThatDoNotEnd, TestClose_OperationUnderWay
//	Exclusion of code that ignores its context                          | TestHold_PausedProcess
//	All held locks of a client share                                    | TestWatchdog_TenThousandLocks, TestHold_Memory, TestClient_LeaksNothing
//	Renewals that are due at the same time                              | TestWatchdog_TenThousandLocks
//	the first panic of each function of an observer                     | TestObservers_PanicIsReportedOnce
package holding
