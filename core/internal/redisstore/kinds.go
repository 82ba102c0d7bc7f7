package redisstore

import (
	"cmp"
	"encoding/hex"
	"time"
)

// Kind is a kind of lock as Redis sees it: its scripts, and its keys and its channel as they
// follow from the key of the lock. A kind is data. What one does not offer has the zero value,
// and nobody asks for its name to find out what it does.
type Kind struct {
	Name   string // in rules, errors and metrics
	Family string // the noun of what kinds have in common that may be used on one name

	Waits  Waiting
	Shares Sharing
	Holds  Holding
	Fenced bool   // every grant carries a fencing token; those of others do where it is asked for
	Suffix string // ends the fields of its holders

	noun string // if it is not that of its family

	names
	scripts
}

// Noun is what it is called in a message, such as "fair lock".
func (k *Kind) Noun() string { return cmp.Or(k.noun, k.Family) }

// Passes reports whether a holder may pass the lock on to the next caller of its process, under the same
// field and without asking Redis: the lock has one holder and no tokens, and Redis has no part in who is next.
func (k *Kind) Passes() bool {
	return k.Holds == Reentrant && k.Shares == Alone && !k.Fenced && (k.Waits == InLine || k.Waits == Spinning)
}

// Waiting is how those wait who want a lock.
type Waiting uint8

// The ways of waiting.
const (
	// InLine waits behind others of this process, of whom the first asks Redis and gets messages.
	InLine Waiting = iota
	// Announced is InLine for one whose attempts keep others out who would share the lock meanwhile.
	Announced
	// Spinning is InLine without messages: the first attempts again by itself.
	Spinning
	// InRedis waits in a queue there, under a field that it keeps, with a channel of its own: see
	// WaiterChannel. Nobody of this process is before it.
	InRedis
	// Abreast waits beside the others: what one gets all get, and nobody is before another.
	Abreast
)

// Sharing is how many have a lock at a time.
type Sharing uint8

// The ways of sharing.
const (
	// Alone is one.
	Alone Sharing = iota
	// Limited is as many as there are permits: who comes while nobody waits need not queue, and a
	// message says nothing about a holder.
	Limited
	// Unlimited is any number.
	Unlimited
)

// Holding is what one has of a lock.
type Holding uint8

// The ways of holding.
const (
	// Reentrant is a hold with a lease, of a client and a number. Its holder can enter again.
	Reentrant Holding = iota
	// Drawn is a hold with a lease, of 16 random bytes, in hex. Each acquisition is another one.
	Drawn
	// Unheld is neither holder nor lease: who acquires may go on. Fields are as those of Drawn.
	Unheld
)

// wire is a field as those scripts want it that are about a holder: of a permit its bytes, which takes
// Lua as long as half of a script.
func (h Holding) wire(field string) string {
	var id [16]byte
	if h != Drawn || len(field) != hex.EncodedLen(len(id)) {
		return field
	}
	if _, err := hex.Decode(id[:], []byte(field)); err != nil {
		return field
	}
	return string(id[:])
}

// names are what else belongs to the key of a lock.
type names struct {
	beside  func(key string) []any               // keys that an acquire has to declare; nil: none
	leases  func(key string) string              // where its leases are; nil: with the key itself
	channel func(key string) string              // of wake-ups; nil: it sends and awaits none
	check   func(store *Store, key string) error // what a key has to be beside CheckName; nil: nothing
}

// scripts are the operations of a kind.
type scripts struct {
	acquire, acquireAll, hold, renew, refresh, release, handOff, force, state, count, clear script

	terms func(args []any, terms *Terms) []any // what acquire wants to know beside the lease; nil: nothing
}

// Terms are those of an attempt.
type Terms struct {
	Lease time.Duration
	Token bool          // a fencing token is wanted
	Wait  time.Duration // how much longer the caller waits; 0: it does not
	Under string        // field of a holder of this process that the lock may be shared with; "" for none

	Demand string   // of a semaphore with leases how many permits it is to have, "0" as many as it has
	Forget []string // operations on the key whose answers have come
	Ghosts []string // fields of earlier attempts of this caller that got no answer

	channel     string // of the messages
	verb, count any    // commands that publish to one, and that count who listens
}

// Kinds are those that there are.
type Kinds struct {
	Reentrant *Kind // RLock
	Fenced    *Kind // RFencedLock
	Spin      *Kind // RedissonSpinLock
	Read      *Kind // the two of RReadWriteLock
	Write     *Kind
	Fair      *Kind // RedissonFairLock

	PermitSemaphore *Kind // RPermitExpirableSemaphore
	PlainSemaphore  *Kind // RSemaphore
	Latch           *Kind // RCountDownLatch
}

// All are the kinds, the reentrant one first.
func (k Kinds) All() []*Kind {
	return []*Kind{k.Reentrant, k.Fenced, k.Spin, k.Read, k.Write, k.Fair, k.PermitSemaphore, k.PlainSemaphore, k.Latch}
}

// NewKinds makes the kinds. One that differs from another in a script shares all else.
func NewKinds() Kinds {
	reentrant := Kind{
		Name: "reentrant", Family: "reentrant lock",
		names: names{channel: Channel},
		scripts: scripts{
			acquire: scriptOf("token", "acquire"), acquireAll: scriptOf("acquire_all"),
			hold: scriptOf("sethold"), renew: scriptOf("renew").each("renew_each"), refresh: scriptOf("notify", "refresh"),
			release: scriptOf("notify", "release"), handOff: scriptOf("token", "notify", "handoff"),
			force: scriptOf("holder", "notify", "force"), state: scriptOf("state"), clear: scriptOf("notify", "clear").each("clear_each"),
		},
	}
	fenced := reentrant
	fenced.Name, fenced.Family, fenced.Fenced, fenced.acquireAll = "fenced", "fenced lock", true, script{}

	spin := reentrant
	spin.Name, spin.Family, spin.Waits, spin.channel, spin.acquireAll = "spin", "spin lock", Spinning, nil, script{}
	read, write := newReadWrite()
	return Kinds{
		Reentrant: &reentrant, Fenced: &fenced, Spin: &spin, Read: read, Write: write, Fair: newFair(reentrant),
		PermitSemaphore: newPermitSemaphore(), PlainSemaphore: newPlainSemaphore(), Latch: newLatch(),
	}
}

// Channel is where the wake-ups of a lock are published; empty if there are none.
func (k *Kind) Channel(key string) string {
	if k.channel == nil {
		return ""
	}
	return k.channel(key)
}

// leaseKey is the only key that has to do with a lease that is there.
func (k *Kind) leaseKey(key string) string {
	if k.leases == nil {
		return key
	}
	return k.leases(key)
}

// both are the keys of a script that ends leases, behind their number: TRYAGAIN says that they are
// on their way to another node. It would find one of them only.
func (k *Kind) both(key string) []any {
	args := make([]any, 0, 8) // with room for arguments
	if k.leases == nil {
		return append(args, 1, key)
	}
	return append(args, 2, key, k.leases(key))
}

// WaiterChannel is where the wake-ups of one waiter are published: that of the lock, where the
// kind has no other for each.
func (k *Kind) WaiterChannel(key, field string) string {
	if k.Waits == InRedis {
		return FairChannel(key, field)
	}
	return k.Channel(key)
}

// Shared reports whether it is held beside others of it.
func (k *Kind) Shared() bool { return k.Shares != Alone }

// TakesSeveral reports whether one script can take several keys.
func (k *Kind) TakesSeveral() bool { return k.acquireAll.Source != nil }

// declared are the keys that a script which grants the lock has to declare, behind their
// number: others beside the lock's own, and the counter of tokens where one is wanted.
func declared(key string, others []any, token bool) []any {
	args := append(make([]any, 0, 8+len(others)), 1, key) // with room for arguments
	args = append(args, others...)
	if token {
		args = append(args, tokenCounter(key))
	}
	args[0] = len(args) - 1
	return args
}
