package redisstore

import (
	"cmp"
	"encoding/hex"
	"time"
)

// Kind describes a kind of lock in Redis: its scripts, and the keys and the channel that are derived from
// the key of the lock. A kind is data. An operation that the kind does not support has the zero value. No
// code branches on the name of a kind.
type Kind struct {
	Name   string // its name in rules, errors and metrics
	Family string // the noun for all kinds that can use the same key, such as "read/write lock"

	Waits  Waiting
	Shares Sharing
	Holds  Holding
	Fenced bool   // every grant carries a fencing token; other kinds draw one on request
	Suffix string // suffix of the fields of the holders

	noun string // the noun for this kind; empty: Family

	names
	scripts
}

// Noun returns the name of the kind in messages, such as "fair lock".
func (k *Kind) Noun() string { return cmp.Or(k.noun, k.Family) }

// Passes reports whether a holder may pass the lock on to the next caller of its process, under the
// same field and without a command to Redis. The lock then has one holder and no tokens, and Redis
// does not decide which waiter is next.
func (k *Kind) Passes() bool {
	return k.Holds == Reentrant && k.Shares == Alone && !k.Fenced && (k.Waits == InLine || k.Waits == Spinning)
}

// Waiting selects how callers wait for a lock.
type Waiting uint8

// The values of Waiting.
const (
	// InLine waiters queue in their process. The first one attempts and receives messages.
	InLine Waiting = iota
	// Announced waiters queue like InLine waiters. In addition, their attempts keep out new shared holders.
	Announced
	// Spinning waiters queue like InLine waiters, but receive no messages. The first one attempts at intervals.
	Spinning
	// InRedis waiters queue in Redis. Each keeps its field and has a separate channel; see
	// [Kind.WaiterChannel]. Their process does not put them in an order.
	InRedis
	// Abreast waiters have no order. When one of them acquires the lock, all can.
	Abreast
)

// Sharing limits how many clients hold a lock at a time.
type Sharing uint8

// The values of Sharing.
const (
	// Alone admits one holder.
	Alone Sharing = iota
	// Limited admits as many holders as there are permits. A caller need not queue if no other caller
	// waits. Messages do not identify holders.
	Limited
	// Unlimited admits any number of holders.
	Unlimited
)

// Holding is the result of an acquisition.
type Holding uint8

// The values of Holding.
const (
	// Reentrant is a hold with a lease. Its field is a client and a number. The holder can re-enter the lock.
	Reentrant Holding = iota
	// Drawn is a hold with a lease. Its field is 16 random bytes in hex, new for each acquisition.
	Drawn
	// Unheld yields neither a hold nor a lease: the caller may only proceed. Fields are as for Drawn.
	Unheld
)

// wire returns a field in the form that the scripts about a holder need. The field of a permit
// becomes 16 bytes here, because the conversion in Lua would take half the time of a script.
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

// names holds the functions that derive names from the key of a lock.
type names struct {
	beside  func(key string) []any  // further keys that an acquire has to declare; nil: none
	leases  func(key string) string // the key of the leases; nil: the key itself
	channel func(key string) string // the channel of wake-ups; nil: the kind has no wake-ups

	members bool // the keys are not keys in Redis but values of groups; see [MemberKey]
	braced  bool // the name of the channel has braces around the whole key; see Store.CheckLatchName
}

// scripts holds the operations of a kind.
type scripts struct {
	acquire, acquireAll, hold, renew, refresh, release, handOff, force, state, count, clear script

	terms func(args []any, terms *Terms) []any // appends the further arguments of acquire; nil: there are none
}

// Terms holds the arguments of an attempt.
type Terms struct {
	Lease time.Duration
	Token bool          // draw a fencing token
	Wait  time.Duration // how much longer the caller waits; 0: it does not wait
	Under string        // field of a holder of this process with which the attempt may share the lock; "": none

	Demand string   // the number of permits to set for a semaphore with leases; "0": do not change the number
	Forget []string // answered operations on the key, which Redis no longer needs to remember
	Ghosts []string // fields of earlier attempts of this caller without an answer

	channel     string // the channel for messages
	verb, count any    // the commands that publish and that count subscribers
}

// Channel returns the channel on which the wake-ups of a lock are published, "" if there are none.
func (k *Kind) Channel(key string) string {
	if k.channel == nil {
		return ""
	}
	return k.channel(key)
}

// leaseKey returns the only key that an operation on an existing lease uses.
func (k *Kind) leaseKey(key string) string {
	if k.leases == nil {
		return k.hash(key)
	}
	return k.leases(key)
}

// keyArgs returns the number of keys and the keys of a script that ends leases. If the leases have a
// separate key, the script declares both keys, so that Redis replies TRYAGAIN while the keys move to
// another node. A script that declared only one of them might run without the other.
func (k *Kind) keyArgs(key string) []any {
	args := make([]any, 0, 8) // with room for arguments
	if k.leases == nil {
		return append(args, 1, k.hash(key))
	}
	return append(args, 2, key, k.leases(key))
}

// WaiterChannel returns the channel on which the wake-ups of one waiter are published. It is the
// channel of the lock, unless each waiter of the kind has its own.
func (k *Kind) WaiterChannel(key, field string) string {
	if k.Waits == InRedis {
		return FairChannel(key, field)
	}
	return k.Channel(key)
}

// Shared reports whether several clients can hold a lock of this kind.
func (k *Kind) Shared() bool { return k.Shares != Alone }

// TakesSeveral reports whether one script can take several keys.
func (k *Kind) TakesSeveral() bool { return k.acquireAll.Source != nil }

// grantKeys returns the number of keys and the keys that a granting script declares: the key of the
// lock, the other keys, and the counter if the script draws a token.
func grantKeys(key string, others []any, token bool) []any {
	args := append(make([]any, 0, 8+len(others)), 1, key) // with room for arguments
	args = append(args, others...)
	if token {
		args = append(args, tokenCounter(key))
	}
	args[0] = len(args) - 1
	return args
}

// Sources returns the scripts of a kind by the names of their operations.
func (k *Kind) Sources() map[string]string {
	sources := make(map[string]string)
	for name, s := range map[string]*script{
		"acquire": &k.acquire, "acquire_all": &k.acquireAll, "sethold": &k.hold, "renew": &k.renew, "refresh": &k.refresh,
		"release": &k.release, "handoff": &k.handOff, "force": &k.force, "state": &k.state, "count": &k.count, "clear": &k.clear,
	} {
		if source, ok := s.Source.(string); ok {
			sources[name] = source
		}
		if s.several != nil {
			sources[name+"_each"] = sourceOf(*s.several)
		}
	}
	return sources
}

// otherKeys returns the keys that a lock of this kind uses beside the key of the lock.
func (k *Kind) otherKeys(key string) (list []string) {
	if k.beside != nil {
		for _, other := range k.beside(key) {
			list = append(list, other.(string)) //nolint:errcheck,forcetypeassert // keys are strings
		}
	}
	if k.Fenced {
		list = append(list, tokenCounter(key))
	}
	if k.Holds == Unheld {
		list = append(list, withSuffix(key, "interlock_ops"))
	}
	return list
}

// Counts reports whether locks of this kind have a count; see [Store.Settle].
func (k *Kind) Counts() bool { return k.count.Source != nil }
