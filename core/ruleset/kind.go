package ruleset

import "cmp"

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

// traits are what the rules need to know about a kind.
type traits struct {
	kind    Kind
	several bool // one lock can be of several keys
	shared  bool // several calls can hold it at a time
	token   bool // it has a fencing token in any case
	permits bool // it has a number of permits

	noun   string // in a sentence; by default the kind and "lock"
	family Kind   // the same for kinds whose holders of one key see each other; by default the kind
	alone  Kind   // to write in place of a shared kind; by default Reentrant
}

// kinds is the table of kinds. A new kind is a constant, a row here, a value of Kind in
// lock.proto, and a kind of package core with the same word.
var kinds = []traits{ //nolint:gochecknoglobals // a table that is only read
	{kind: Reentrant, several: true},
	{kind: Fenced, token: true},
	{kind: Spin},
	{kind: Fair},
	{kind: Read, shared: true, family: Write, alone: Write},
	{kind: Write},
	{kind: Semaphore, shared: true, permits: true, noun: "semaphore"},
}

// Kinds lists the kinds that exist.
func Kinds() []Kind {
	list := make([]Kind, len(kinds))
	for i := range kinds {
		list[i] = kinds[i].kind
	}
	return list
}

// traits are the row of the kind; of an unknown kind an empty one.
func (k Kind) traits() traits {
	for i := range kinds {
		if kinds[i].kind == k {
			return kinds[i]
		}
	}
	return traits{}
}

func (k Kind) isKnown() bool { return k != "" && k.traits().kind == k }

// TakesSeveral reports whether several keys can be taken together.
func (k Kind) TakesSeveral() bool { return k.traits().several }

// Shared reports whether several calls can hold it at a time. Then there is no token, and no
// debounce window.
func (k Kind) Shared() bool { return k.traits().shared }

// HasToken reports whether every lock of the kind has a fencing token.
func (k Kind) HasToken() bool { return k.traits().token }

// Noun is what it is called in a sentence: "fair lock", "semaphore".
func (k Kind) Noun() string { return cmp.Or(k.traits().noun, string(k)+" lock") }

func (k Kind) family() Kind { return cmp.Or(k.traits().family, k) }
