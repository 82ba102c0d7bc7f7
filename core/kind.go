package core

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
