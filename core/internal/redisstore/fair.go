package redisstore

import (
	"strings"
	"time"
)

// The intervals at which the waiters of this library attempt to take a fair lock. fair_acquire.lua drops
// a waiter that attempts less often. Its numbers follow from these constants, and a test compares both.
const (
	FairLook     = 500 * time.Millisecond // the longest sleep of a waiter
	FairFarLook  = 5 * FairLook / 2       // the longest sleep of a waiter with FairManyWait or more before it
	FairManyWait = 300
)

// newFair returns the kind of RedissonFairLock: a reentrant lock with a queue in Redis.
//
//	key                           as for a reentrant lock
//	redisson_lock_queue:{key}     list of the waiters, the next one first
//	redisson_lock_timeout:{key}   sorted set of the deadlines of the waiters
//	{key}:interlock_seen          hash of the times at which each waiter was last seen
//	channel                       redisson_lock__channel:{key}:<waiter>, one for each waiter
//
// Acquire (token, fair, fair_acquire) also puts the waiter into the queue and drops waiters that stopped
// attempting. The other operations use the scripts of a reentrant lock, but fair.lua, which notifies the
// head of the queue, replaces notify.lua. Clear (fair, fair_clear) also removes waiters from the queue.
func newFair() *Kind {
	kind := newReentrant()
	kind.Name, kind.Family, kind.Waits = "fair", "fair lock", InRedis
	kind.beside, kind.terms = fairKeys, fairTerms
	token := strings.ReplaceAll(sourceOf(scriptOf("token")), "KEYS[2]", "KEYS[5]") // after fairKeys
	kind.acquire, kind.acquireAll = scriptFrom(token+sourceOf(scriptOf("fair", "fair_acquire"))), script{}
	kind.refresh, kind.release = scriptOf("fair", "refresh"), scriptOf("fair", "release")
	kind.handOff, kind.force = scriptOf("token", "fair", "handoff"), scriptOf("holder", "fair", "force")
	kind.clear = scriptOf("fair", "fair_clear")
	return &kind
}

// fairKeys returns the keys that an acquire declares beside the key of the lock.
func fairKeys(key string) []any {
	return []any{FairQueue(key), FairTimeouts(key), withSuffix(key, "interlock_seen")}
}

// fairTerms appends whether the caller wants a place in the queue, the command that notifies a waiter, the
// command that counts the subscribers of a waiter, and the fields of earlier attempts.
func fairTerms(args []any, t *Terms) []any {
	waits := 0
	if t.Wait > 0 {
		waits = 1
	}
	return appendStrings(append(args, waits, t.verb, t.count), t.Ghosts)
}
