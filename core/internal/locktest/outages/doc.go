// Package outages tests a Redis that is silent, slow or down, lost commands and replies and the ghosts that they
// leave, the connections and credentials of a client, hooks, and replicas that acknowledge.
//
//	promise                                              | tests
//	If Redis does not answer, the error is               | TestSilence_WaitTimeIsKept, TestBackend_RedisDown, TestSilence_OperationsWithOneAttempt
//	The lock is not reported as taken                    | TestBackend_ErrorReplies, TestGhost_OfTheCallerIsNotAHolder, TestBehindGhost_OfEachKind
//	callers fail at once until Redis answers a ping      | TestSlow_NextCallerFailsAtOnce
//	If a connection breaks at the end of the             | TestOutage_ResendHasOneMoreTimeout
//	A Redis that answers slowly counts as available      | TestSlow_EveryFreeLockIsAcquired, TestOutage_SlowAnswersHaveOneBound
//	LOADING, BUSY, NOREPLICAS, CLUSTERDOWN               | TestPassing_EveryOperation, TestPassing_IsWaitedOut
//	at most a few hundred commands a second              | TestOutage_IsNotAmplified
//	a failed Acquire leaves nothing behind               | TestGhost_IsClearedUpHoweverLateItLands, TestLostReplies_AtEveryStep, TestLostReplies_EachKind, TestReaper_ForbiddenKeyStopsNoOther
//	A lock has one holder at most                        | TestSilence_HoldersNeverOverlap, TestHooks_CannotSendTwice
//	replicas that acknowledge ([WithReplicaAcks])        | TestReplicas_Acknowledge, TestReplicas_ShortfallIsUndone
//	if replicas acknowledge it                           | TestReplicas_NoHandOff
//	beside the pool and the Limiter                      | TestNew_BesideThePoolOfTheCaller
//	It writes to the log only                            | TestBackend_IsLoggedWithoutAnObserver
package outages
