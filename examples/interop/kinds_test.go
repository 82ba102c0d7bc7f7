package interop_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// kind is a kind of lock on both sides. Every item of the suite runs with each row of the table of kinds.
type kind struct {
	name string
	java interop.Kind
	lock func(locks *core.Client, name string) core.Lock

	// keys returns the shared keys for a name of a test, before a name mapper. A lock of several keys derives them
	// from the name. Nil: the name itself.
	keys func(name string) []string
	// layout returns the hash of a lock with one holder. Nil: its field with the count.
	layout func(field, count string) map[string]string
	// beside returns patterns of keys that exist while the lock is wanted or held but must not exist when it is free.
	// Nil: none.
	beside func(key string) []string
	// waited reports whether a caller waits for a key. Nil: waiters cannot be observed, as for a kind without
	// messages.
	waited func(t *testing.T, s *site, key string) bool
	// rival is the kind that the holder excludes, if it is another kind: a reader excludes writers. In every item
	// the rival comes after the holder.
	rival string
	// sentinel marks a kind that also runs behind Sentinel.
	sentinel bool
	since    release // the first version of Redisson that has the kind
}

// release is a version of Redisson, without the patch. The zero value is any version.
type release struct{ major, minor int }

// The versions that brought kinds of lock.
var (
	withNonReentrant = release{4, 4}
	withGroups       = release{3, 38}
)

// has reports whether the site has a version of Redisson, or a later one.
func (s *site) has(r release) bool { return atLeast(s.version, r.major, r.minor) }

var kinds = []kind{
	{name: "reentrant", java: interop.Lock, lock: (*core.Client).Lock, waited: subscribed, sentinel: true},
	{name: "fenced", java: interop.Fenced, lock: (*core.Client).FencedLock, waited: subscribed},
	{name: "spin", java: interop.Spin, lock: (*core.Client).SpinLock},
	{name: "multi", java: interop.Multi, lock: multiLock, keys: twoNames, waited: subscribed},
	{name: "fair", java: interop.Fair, lock: (*core.Client).FairLock, beside: besideFair, waited: queuedUp},
	{name: "write", java: interop.Write, lock: (*core.Client).WriteLock, layout: writeLayout, beside: besideReaders, waited: subscribedRW},
	{name: "read", java: interop.Read, lock: (*core.Client).ReadLock, layout: readLayout, beside: besideReaders, waited: subscribedRW, rival: "write"},
	{
		name: "write-then-read", java: interop.Write, lock: (*core.Client).WriteLock, layout: writeLayout,
		beside: besideReaders, waited: subscribedRW, rival: "read",
	},
	{
		name: "non-reentrant", java: interop.NonReentrant, lock: (*core.Client).NonReentrantLock,
		waited: subscribed, since: withNonReentrant,
	},
	{
		name: "non-reentrant-fair", java: interop.NonReentrantFair, lock: (*core.Client).NonReentrantFairLock,
		beside: besideFair, waited: queuedUp, since: withNonReentrant,
	},
}

func kindOf(name string) kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	panic("no kind " + name)
}

func multiLock(locks *core.Client, name string) core.Lock { return locks.MultiLock(twoNames(name)...) }

// twoNames returns the names of a multi lock. In a Cluster they may be on two masters.
func twoNames(name string) []string { return []string{name, name + "/2"} }

func (k kind) names(name string) []string {
	if k.keys == nil {
		return []string{name}
	}
	return k.keys(name)
}

// runsOn reports whether the kind is tested at a site.
func (k kind) runsOn(s *site) bool { return (s.topology != sentinel || k.sentinel) && s.has(k.since) }

// rivalKind returns the kind with which callers wait for a holder of this kind.
func (k kind) rivalKind() kind {
	if k.rival == "" {
		return k
	}
	return kindOf(k.rival)
}

// mapped returns the kind with the keys of a name mapper.
func (k kind) mapped(prefix string) kind {
	plain := k
	k.keys = func(name string) []string {
		keys := slices.Clone(plain.names(name))
		for i, key := range keys {
			keys[i] = prefix + key
		}
		return keys
	}
	return k
}

// subscribed reports whether a client listens on the channel of RLock.
func subscribed(t *testing.T, s *site, key string) bool {
	t.Helper()
	return s.listeners(t, key, prefixed("redisson_lock__channel", key)) > 0
}

// subscribedRW reports whether a client listens on the channel of a read/write lock.
func subscribedRW(t *testing.T, s *site, key string) bool {
	t.Helper()
	return s.listeners(t, key, rwChannel(key)) > 0
}

// queuedUp reports whether the head of the queue of a fair lock listens on its channel.
func queuedUp(t *testing.T, s *site, key string) bool {
	t.Helper()
	queue := s.queued(t, key)
	return len(queue) > 0 && s.listeners(t, key, fairChannel(key, queue[0])) > 0
}

func fairChannel(key, field string) string {
	return prefixed("redisson_lock__channel", key) + ":" + field
}

func besideFair(key string) []string { return []string{fairQueue(key), fairTimeouts(key)} }

func besideReaders(key string) []string {
	return []string{suffixed(key, "*:rwlock_timeout:*"), suffixed(key, "interlock_writer")}
}

func readLayout(field, count string) map[string]string {
	return map[string]string{"mode": "read", field: count}
}

// writeLayout returns a hash whose field ends in ":write". The field of a hold in Go already
// does.
func writeLayout(field, count string) map[string]string {
	return map[string]string{"mode": "write", strings.TrimSuffix(field, ":write") + ":write": count}
}

// prefixed and suffixed are Redisson's two rules to derive names from the name of a lock.
func prefixed(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + ":" + key
	}
	return prefix + ":{" + key + "}"
}

func suffixed(key, suffix string) string {
	if strings.Contains(key, "{") {
		return key + ":" + suffix
	}
	return "{" + key + "}:" + suffix
}
