// Package clusters tests Redis Cluster, Sentinel, and endpoints that stand in front of several servers.
//
//	promise                                | tests
//	A lock has one holder at most          | TestFailovers_NoTwoHolders, TestCluster_HeldWhileItsSlotMoves
//	Safety across a failover               | TestCluster_Failover
//	share one connection to each node      | TestCluster_DeadNodeDelaysNoOther
//	LOADING, BUSY, NOREPLICAS, CLUSTERDOWN | TestCluster_WaitedForWhileItsSlotMoves, TestSentinel_LockContendFailover
//	With [WithLossNotice], and             | TestCluster_LossNotice
//	A waiter finds a free lock             | TestCluster_ShardedSubscriptionsComeBack
package clusters
