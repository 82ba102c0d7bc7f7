package interop_test

import "testing"

// wire checks the data that Redisson itself writes to Redis for an object, with several of its threads. The kinds of
// package core must match it: the table of kinds and the tests with both sides check more.
type wire struct {
	name  string
	run   func(t *testing.T, s *site)
	only  []string // topologies; empty: all
	since release  // the first version of Redisson that has the object
}

var wires = []wire{
	{name: "fair lock", run: fairInOrder},
	{name: "fair lock, waiter gives up", run: fairGivesUp},
	{name: "read lock", run: readersThenWriter},
	{name: "write lock, downgraded", run: writerDowngrades},
	{name: "semaphore", run: semaphoreCounts},
	{name: "permit semaphore", run: permitsHaveIDs},
	{name: "permit semaphore, expired", run: permitsExpire},
	{name: "count-down latch", run: latchOpens},
	{name: "redlock", run: redlockOverServers, only: []string{single}},
}

// meetings are the tests of both sides for a single kind.
var meetings = []wire{
	{name: "read-write, readers of both", run: readersOfBoth},
	{name: "read-write, reader crashes", run: readerCrashes},
	{name: "read-write, Go downgrades", run: goDowngrades},
	{name: "read-write, Java downgrades", run: javaDowngrades},
	{name: "read-write, Java reads several", run: javaReadsSeveral},
	{name: "read-write, contended", run: readersAndWriters},
	{name: "fair, interleaved", run: fairInterleaved},
	{name: "fair, head dies", run: fairHeadDies},
	{name: "fair, waiters time out", run: fairTimesOut},
	{name: "fair, fifty waiters", run: fairFifty},
	{name: "fair, random kills", run: fairKills},
	{name: "fair, asks behind a dead head", run: fairAsks, only: []string{single}},
	{name: "semaphore, shared", run: semaphoreShared},
	{name: "permits, shared", run: permitsShared},
	{name: "permits, come back", run: permitsComeBack},
	{name: "permits, released by id", run: permitsReleasedByID},
	{name: "permits, renewed and killed", run: permitsRenewed},
	{name: "lost replies, no locks", run: lostRepliesOfCounts, only: []string{single}},
	{name: "count-down latch, shared", run: latchShared},
	{name: "redlock, shared", run: redlockShared, only: []string{single}},
	{name: "tokens, counter deleted", run: counterDeleted},
	{name: "tokens of any kind", run: tokenOfAnyKind},
	{name: "non-reentrant, entered twice", run: enteredTwice, since: withNonReentrant},
	{name: "group, overlapping", run: groupsOverlap, since: withGroups},
	{name: "group, renewed and killed", run: groupRenewed, since: withGroups},
	{name: "group, forced", run: groupForced, since: withGroups},
	{name: "group, StringCodec", run: groupOfStrings, since: withGroups},
}
