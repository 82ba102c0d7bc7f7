// Package acquiring tests how a caller gets a lock: Acquire and Do, contexts and re-entry, options and names, errors
// and refusals, and the construction of a client.
//
//	promise                                          | tests
//	the lock remained taken for the whole wait time   | TestAcquire_WaitTimeIsAnUpperBound, TestNotAcquiredError_OfAnotherHold
//	the lock is neither held nor known to be taken   | TestErrors_KeepTheCauseOfAnOutage, TestAcquire_EachKind_ErrorReplies
//	a limit was reached; nothing was sent            | TestLimits_WaitersPerKeyAndPerClient, TestRefusal_OfWaiters
//	the client was closed                            | TestRefusal_OfTheClient
//	an argument cannot be used, and nothing was sent | TestAcquire_BadInputSendsNothing, TestAcquire_EachKind_InvalidTimes, TestTimes_ErrorAsksForAMissingUnit
//	ErrNotAcquired the lock remained taken            | TestErrors_MatchOneOutcome, TestErrors_OfQuestionsMatchOneOutcome, TestErrors_OfAMultiLockMatchOneOutcome
//	a failed Acquire leaves nothing behind           | TestAcquire_EachKind_LeftBeforeItsEnd, TestAcquire_EachKind_LandsAfterItsCallerLeft, TestAcquire_TTLForbidden
//	It carries the lock                              | TestReenter_ConcurrentChildrenCountExactly, TestReenter_FrameworkContextWithStringKeys, TestHoldsOf_ListsWhatTheContextCarries
//	With any other context                           | TestReenter_Strangers, TestReenter_ReleasedContext
//	Two clients of one process exclude each other    | TestReenter_Strangers
//	Locks that they acquire later exclude each other | TestClient_RestoredTwice
//	[Detach] is for work                             | TestDetach_HidesTheLock
//	Without contention, Acquire is one round trip    | TestAcquire_UncontendedIsOneRoundTrip, TestAcquire_WaitZeroIsOneRoundTrip
package acquiring
