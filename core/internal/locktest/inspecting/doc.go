// Package inspecting tests the operations that read locks or take them away: State, Inspect, Locks, Stats, Wire,
// Preflight, Evict and ForceRelease.
//
//	promise                                        | tests
//	If a lock is deleted or forced away            | TestEvict_OwnHolder, TestForceRelease_FreesAndWakes
//	A client frees only locks that it holds        | TestEvict_OnlyFromAHolder, TestEvict_OtherHoldersKeepTheLock
//	the lock is neither held nor known to be taken | TestLocks_RedisIsDown
package inspecting
