package core

import (
	"strconv"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Kind names a kind of lock, as it appears in rules, spans and metrics.
type Kind string

// The kinds of lock.
const (
	KindReentrant Kind = "reentrant" // Redisson's RLock: [Client.Lock] and [Client.MultiLock]
	KindFenced    Kind = "fenced"    // RFencedLock: [Client.FencedLock]
	KindSpin      Kind = "spin"      // RedissonSpinLock: [Client.SpinLock]
	KindRead      Kind = "read"      // the read lock of RReadWriteLock: [Client.ReadLock]
	KindWrite     Kind = "write"     // its write lock: [Client.WriteLock]
	KindFair      Kind = "fair"      // RedissonFairLock: [Client.FairLock]
	KindRedlock   Kind = "redlock"   // RedissonRedLock: [Redlock]

	KindSemaphore      Kind = "semaphore"       // RPermitExpirableSemaphore: [Client.Semaphore]
	KindPlainSemaphore Kind = "plain_semaphore" // RSemaphore: [Client.PlainSemaphore]
	KindLatch          Kind = "latch"           // RCountDownLatch: [Client.CountDownLatch]
)

// LockOf names a lock by the word of its kind, as rules have it; permits is for
// [KindSemaphore]. It reports false for a kind that nobody holds, such as a latch, and for an unknown one.
func (c *Client) LockOf(kind Kind, name string, permits int) (Lock, bool) {
	for _, k := range c.kinds.All() {
		if k.Name != string(kind) || k.Holds == redisstore.Unheld {
			continue
		}
		l := Lock{client: c, kind: k, name: name}
		if k.Shares == redisstore.Limited {
			l.demand = strconv.Itoa(permits)
		}
		return l, true
	}
	return Lock{}, false
}
