package redisstore

// Kinds holds all kinds of lock.
type Kinds struct {
	Reentrant *Kind // RLock
	Fenced    *Kind // RFencedLock
	Spin      *Kind // RedissonSpinLock
	Read      *Kind // RReadWriteLock
	Write     *Kind // RReadWriteLock
	Fair      *Kind // RedissonFairLock
	Group     *Kind // RedissonFasterMultiLock

	PermitSemaphore *Kind // RPermitExpirableSemaphore
	PlainSemaphore  *Kind // RSemaphore
	Latch           *Kind // RCountDownLatch
}

// All returns the kinds, the reentrant one first.
func (k Kinds) All() []*Kind { return append(k.Keyed(), k.Group) }

// Keyed returns the kinds whose locks are keys in Redis: all except the group lock.
func (k Kinds) Keyed() []*Kind {
	return []*Kind{k.Reentrant, k.Fenced, k.Spin, k.Read, k.Write, k.Fair, k.PermitSemaphore, k.PlainSemaphore, k.Latch}
}

// NewKinds returns all kinds of lock.
func NewKinds() Kinds {
	reentrant := newReentrant()
	read, write := newReadWrite()
	return Kinds{
		Reentrant: &reentrant, Fenced: newFenced(), Spin: newSpin(), Read: read, Write: write, Fair: newFair(), Group: newGroup(),
		PermitSemaphore: newPermitSemaphore(), PlainSemaphore: newPlainSemaphore(), Latch: newLatch(),
	}
}
