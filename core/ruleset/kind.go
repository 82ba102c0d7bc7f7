package ruleset

import "slices"

// Kind is a kind of lock.
type Kind string

// The kinds of lock. All rules about one key need the same kind, except that [Read] and
// [Write] belong together: a lock of one does not wake the waiters of another, and its holders
// have other tokens or none. Where two keys are the same to the letter, another kind is an
// error: see [MixedKinds].
const (
	// Reentrant is Redisson's RLock. The default.
	Reentrant Kind = "reentrant"
	// Fenced is RFencedLock: every holder has a larger fencing token than the one
	// before, by which a store refuses the late write of a holder that was paused. Of
	// one key only, as all that follow.
	Fenced Kind = "fenced"
	// Spin is RedissonSpinLock: without messages, for very many keys that are seldom
	// taken. Who waits in another process attempts again and again.
	Spin Kind = "spin"
	// Fair is RedissonFairLock: first come, first served, across all processes. It costs
	// throughput; the other kinds are fair enough where nobody counts turns.
	Fair Kind = "fair"
	// Read is the read lock of RReadWriteLock: any number of calls hold it at a time, while
	// nobody holds [Write] of the same key. A call under it cannot take Write of its key.
	Read Kind = "read"
	// Write is the write lock of RReadWriteLock: one call, and no reader. A call under it
	// may take [Read] of its key, too.
	Write Kind = "write"
	// Semaphore is RPermitExpirableSemaphore: as many calls as there are [Rule.Permits] run
	// at a time, across all processes. Busy is 429, RESOURCE_EXHAUSTED.
	Semaphore Kind = "semaphore"
)

// Kinds lists the kinds that exist.
func Kinds() []Kind { return []Kind{Reentrant, Fenced, Spin, Fair, Read, Write, Semaphore} }

func (k Kind) isKnown() bool { return slices.Contains(Kinds(), k) }

// TakesSeveral reports whether several keys can be taken together.
func (k Kind) TakesSeveral() bool { return k == Reentrant }

// Shared reports whether several calls can hold it at a time. Then there is no token, and no
// debounce window.
func (k Kind) Shared() bool { return k == Read || k == Semaphore }

// Noun is what it is called in a sentence: "fair lock", "semaphore".
func (k Kind) Noun() string {
	if k == Semaphore {
		return "semaphore"
	}
	return string(k) + " lock"
}

// family is the same for kinds of which the holders of one key see each other.
func (k Kind) family() Kind {
	if k == Read {
		return Write
	}
	return k
}
