package ruleset

import (
	"cmp"
)

// Kind is a kind of lock.
type Kind string

// The kinds of lock. All rules of one key need the same kind, except that [Read] and [Write] belong
// together. A lock of one kind does not wake the waiters of another kind, and their holders' fencing
// tokens are unrelated or do not exist. Two rules with the same template and different kinds are an
// error: see [MixedKinds].
const (
	// Reentrant is Redisson's RLock. It is the default.
	Reentrant Kind = "reentrant"
	// Fenced is RFencedLock. Each holder has a larger fencing token than the holder before it. A
	// store uses the token to refuse the late write of a holder that was paused. Fenced and the
	// kinds below have one key only.
	Fenced Kind = "fenced"
	// Spin is RedissonSpinLock. It sends no messages, which suits very many keys that are seldom
	// taken. A waiter in another process attempts again and again.
	Spin Kind = "spin"
	// Fair is RedissonFairLock: first come, first served, across all processes. The order costs
	// throughput. The other kinds are fair enough unless the order of single turns matters.
	Fair Kind = "fair"
	// Read is the read lock of RReadWriteLock. Any number of calls hold it at a time, while no call
	// holds [Write] of the same key. A call that holds it cannot take Write of the same key.
	Read Kind = "read"
	// Write is the write lock of RReadWriteLock. One call holds it, and no call holds [Read] of the
	// key at the same time, except that the call itself may take [Read], too.
	Write Kind = "write"
	// Semaphore is RPermitExpirableSemaphore. At most [Rule.Permits] calls run at a time, across all
	// processes. A busy semaphore is 429, RESOURCE_EXHAUSTED.
	Semaphore Kind = "semaphore"
)

// KindTraits describes a kind.
type KindTraits struct {
	Several bool   // several keys can be taken together
	Shared  bool   // several calls can hold it at a time, so it has no token and no debounce window
	Token   bool   // every lock has a fencing token
	Permits bool   // it has a number of permits
	Noun    string // in a sentence: "fair lock", "semaphore"

	kind   Kind
	family Kind // kinds of one family exclude each other on one key; default: the kind itself
	alone  Kind // the kind that messages suggest instead of a shared one; default: Reentrant
}

// kinds is the table of kinds. A new kind is a constant, a row here, a value of Kind in
// lock.proto, and a kind of package core with the same word.
var kinds = []KindTraits{ //nolint:gochecknoglobals // a table that is only read
	{kind: Reentrant, Noun: "reentrant lock", Several: true},
	{kind: Fenced, Noun: "fenced lock", Token: true},
	{kind: Spin, Noun: "spin lock"},
	{kind: Fair, Noun: "fair lock"},
	{kind: Read, Noun: "read lock", Shared: true, family: Write, alone: Write},
	{kind: Write, Noun: "write lock"},
	{kind: Semaphore, Noun: "semaphore", Shared: true, Permits: true},
}

// Kinds lists the kinds that exist.
func Kinds() []Kind {
	list := make([]Kind, len(kinds))
	for i := range kinds {
		list[i] = kinds[i].kind
	}
	return list
}

// Traits returns the traits of the kind, or the zero value for an unknown kind.
func (k Kind) Traits() KindTraits {
	for i := range kinds {
		if kinds[i].kind == k {
			return kinds[i]
		}
	}
	return KindTraits{}
}

func (k Kind) isKnown() bool { return k != "" && k.Traits().kind == k }

// family returns the family of the kind: see [KindTraits].
func (k Kind) family() Kind { return cmp.Or(k.Traits().family, k) }
