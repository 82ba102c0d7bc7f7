// Package kinds tests the particulars of each kind of lock: its layout in Redis, its waiters, its use beside Redisson,
// and its cost.
//
//	promise                                                         | tests
//	A lock has one holder at most                                   | TestRedlock_NeverTwoHolders, TestWire_ForeignHolderIsRespectedAndNamed
//	A read lock has readers only                                    | TestReadWriteContest_InABubble, TestReadWriteContest_OnAServer
//	a semaphore at most as many holders as permits                  | TestPermitSemaphore_Conservation, TestPermitSemaphore_ConservationProperty
//	[Client.Lock] is the reentrant lock                             | TestWire_HolderFieldIsUUIDAndNumber, TestWire_CountIsTwoWhileReentered
//	[Client.NonReentrantLock] refuses a second acquisition          | TestNonReentrant_HolderIsRefused, TestNonReentrant_OthersWait
//	[Client.NonReentrantFairLock] refuses a second acquisition      | TestNonReentrant_HolderIsRefused, TestNonReentrant_BesideLock
//	[Client.GroupLock] takes several values of a group at once      | TestGroup_ValuesExclude, TestGroup_AllOrNothing, TestGroup_Wire
//	[Client.MultiLock] takes several of them at once                | TestMultiLock_AllOrNothing, TestMultiLock_TakesAllInOneScript
//	[Client.MultiLock] says how long                                | TestMultiLock_IsNotStarvedBySingleKeys, TestMultiLock_HoldsNothingWhileItWaits
//	a fencing token with each grant                                 | TestFenced_TokensRise, TestWithToken_NeverFalls
//	Fencing by the lock alone                                       | TestWithToken_OfALockThatCannotHaveOne
//	[Client.SpinLock] polls                                         | TestSpin_NoMessages
//	[Client.FairLock] has one queue for all processes               | TestFair_OrderOfArrival, TestFair_DeadHeads, TestFair_TimeoutLeavesNothing
//	[Client.ReadLock] has any number of readers                     | TestReadWrite_ReadersOfOneClient, TestReadWrite_WithRedisson
//	[Client.Semaphore] has as many holders as permits               | TestPermitSemaphore_Wire, TestPermitSemaphore_SharedWithRedisson
//	[Client.PlainSemaphore] and [Client.CountDownLatch] are numbers | TestSemaphore_Wire, TestCountDownLatch_Wire
//	[Redlock] is one lock on several independent servers            | TestRedlock_AllServers, TestRedlock_AMinorityMayBeDead
//	a count would become too large for Redisson                     | TestCounts_BeyondRangeChangesNothing
//	every name is used for one kind of lock                         | TestKinds_OneNameIsForOneKind, TestKinds_OneForEachName
package kinds
