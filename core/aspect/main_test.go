package aspect_test

import (
	"testing"

	"go.uber.org/goleak"
)

// The tests of the contract in the package comment:
//
//	decides all it can before late variables         TestCall_LateVariablesAreAskedForLast, TestCall_RefusedBeforeLateVariables
//	prepares only if there is a holder to wait for   TestCall_BeforeWait, TestCall_BeforeWaitAndAFullQueue
//	runs the handler at most once, under its locks   TestRun_HandlerHoldsTheLock, TestRun_EachStrategyForEachCause
//	runs it unlocked only if a rule or Suspend says  TestRun_Disabled, TestRun_WhenFalse, TestRun_DryRun, TestAspect_Suspend
//	returns the error of the handler untouched       TestRun_ErrorOfTheHandler, TestRun_FailedRelease
//	releases after a panic or Goexit                 TestRun_PanicAndGoexit, TestServer_Panic
//	releases although the caller has left            TestRun_ReleasesAfterTheCallerLeft
//	a refusal releases the locks of earlier rules    TestRun_RefusalFreesTheRulesBefore, TestServer_SeveralRules
//	ends the wait before the caller's deadline       TestCall_DeadlineOfTheCaller, TestCall_AnswerBy
//	reports a lock that is lost while it is used     TestLoss_OfAFixedLease, TestServer_DeletedLock
//	shows clients no key, owner or Redis answer      TestRun_EachStrategyForEachCause, and package adaptertest
//	evaluates the key once                           TestRun_KeyIsEvaluatedOnce
//	is safe for concurrent use and during reloads    TestTable_CallsDuringReloads, TestRegistry_CheckOrder
//
// TestMain fails if a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
