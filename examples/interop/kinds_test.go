package interop_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// kind is a kind of lock as both sides know it. A row in the table of kinds has every item
// of the suite run with it.
type kind struct {
	name string
	java interop.Kind
	lock func(locks *core.Client, name string) core.Lock

	// keys are what the two sides share for one name of a test, before a name mapper; a lock of
	// several keys makes them from it. Nil: the name itself.
	keys func(name string) []string
	// layout is the hash of a lock that one holder holds. Nil: its field with the count.
	layout func(field, count string) map[string]string
	// beside are patterns of keys that are there while the lock is wanted or held, and must not be
	// left when it is free. Nil: none.
	beside func(key string) []string
	// waited tells whether somebody waits for a key. Nil: it cannot be seen, as with a kind
	// without messages.
	waited func(t *testing.T, s *site, key string) bool
	// rival is the kind that the holder keeps out, where that is another one: a reader keeps out
	// writers. It comes after the holder in every item.
	rival string
	// sentinel has the kind run behind Sentinel, too.
	sentinel bool
}

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

// twoNames are those of a multi lock. In a Cluster they may be on two masters.
func twoNames(name string) []string { return []string{name, name + "/2"} }

func (k kind) names(name string) []string {
	if k.keys == nil {
		return []string{name}
	}
	return k.keys(name)
}

// runsOn tells whether the kind is tested in a topology.
func (k kind) runsOn(topology string) bool { return topology != sentinel || k.sentinel }

// against is the kind of who waits for a holder of this one.
func (k kind) against() kind {
	if k.rival == "" {
		return k
	}
	return kindOf(k.rival)
}

// mapped is the kind with the keys that a name mapper makes.
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

// subscribed tells whether somebody listens on the channel of RLock.
func subscribed(t *testing.T, s *site, key string) bool {
	t.Helper()
	return s.listeners(t, key, prefixed("redisson_lock__channel", key)) > 0
}

// subscribedRW tells whether somebody listens on the channel of a read/write lock.
func subscribedRW(t *testing.T, s *site, key string) bool {
	t.Helper()
	return s.listeners(t, key, rwChannel(key)) > 0
}

// queuedUp tells whether the head of a fair lock's queue listens on its channel.
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

// writeLayout has a field that ends in ":write"; that of a hold in Go does so already.
func writeLayout(field, count string) map[string]string {
	return map[string]string{"mode": "write", strings.TrimSuffix(field, ":write") + ":write": count}
}

// prefixed and suffixed are Redisson's two rules for names that follow from the name of a lock.
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
