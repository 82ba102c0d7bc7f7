package redisstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// The names that Redisson derives from the key of a lock. Those that begin with a prefix
// follow derived, those that end in a suffix follow behind; a latch has a rule of its own.

// What the channels begin with.
const (
	lockChannel      = "redisson_lock__channel:"
	readWriteChannel = "redisson_rwlock:"
	semaphoreChannel = "redisson_sc:"
	latchChannel     = "redisson_countdownlatch__channel__"
)

// ofKeys reports whether a channel is one of those above, of a key that begins with prefix.
func ofKeys(channel, prefix string) bool {
	for _, kind := range [...]string{lockChannel, readWriteChannel, semaphoreChannel, latchChannel} {
		if key, is := strings.CutPrefix(channel, kind); is {
			return strings.HasPrefix(key, prefix) || strings.HasPrefix(key, "{"+prefix)
		}
	}
	return false
}

// Channel is where Redisson publishes the unlock of key: the hash tag of the key
// is kept, or the whole key becomes one. The test is "contains a brace", as in
// Redisson, even where that gives another slot; see CheckName.
func Channel(key string) string { return derived(lockChannel, key) }

// What the names of keys begin with that belong to a lock.
const (
	queuePrefix    = "redisson_lock_queue:"
	timeoutsPrefix = "redisson_lock_timeout:"
	tokenPrefix    = "redisson_lock_token:"
	unlockPrefix   = "redisson_unlock_latch:"
)

// FairQueue is the list of those who wait for a fair lock.
func FairQueue(key string) string { return derived(queuePrefix, key) }

// FairTimeouts is the sorted set of the moments until which they wait.
func FairTimeouts(key string) string { return derived(timeoutsPrefix, key) }

// FairChannel is where the one who waits with field is woken.
func FairChannel(key, field string) string { return Channel(key) + ":" + field }

// ReadWriteChannel is where the unlocks of a read-write lock are published.
func ReadWriteChannel(key string) string { return derived(readWriteChannel, key) }

// ReadTimeout is the key that lives as long as the n-th read hold of field, counted from 1.
func ReadTimeout(key, field string, n int) string {
	return behind(key, field) + ":rwlock_timeout:" + strconv.Itoa(n)
}

// UnlockLatch is where Redisson notes for a while that the unlock with this id was executed.
func UnlockLatch(key, id string) string { return derived(unlockPrefix, key) + ":" + id }

// tokenCounter is where Redisson counts the fencing tokens of key. It is in the slot of the
// key, as the channel is.
func tokenCounter(key string) string { return derived(tokenPrefix, key) }

// SemaphoreChannel is where permits that come back are published, leased ones too.
func SemaphoreChannel(key string) string { return derived(semaphoreChannel, key) }

// PermitLeases is the sorted set of the permits of key that are leased.
func PermitLeases(key string) string { return behind(key, "timeout") }

// LatchChannel is where the opening of a latch is published. The key is in braces even if it
// has some itself; see CheckLatchName.
func LatchChannel(key string) string { return latchChannel + "{" + key + "}" }

// derived is the name of something that belongs to key, which has a hash tag, or is made one.
func derived(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + key
	}
	return prefix + "{" + key + "}"
}

// behind is the name of something that belongs to key and begins with it.
func behind(key, suffix string) string {
	if strings.Contains(key, "{") {
		return key + ":" + suffix
	}
	return "{" + key + "}:" + suffix
}

// CheckName refuses a key of which what is derived would be in another slot of a Cluster, or
// which Redisson would route to another slot than the server does. The names of all kinds
// but latches are where the channel is: no prefix has braces, and a suffix comes last.
func (s *Store) CheckName(key string) error {
	if err := s.checkRouting(key); err != nil {
		return err
	}
	if s.apart(key, Channel) {
		return fmt.Errorf("the braces in %q put the lock and its channel into different slots of the cluster; "+
			"use one hash tag such as order:{42}, or no braces", key)
	}
	return nil
}

// CheckKey is CheckName for the key of a kind, which may want more.
func (s *Store) CheckKey(k *Kind, key string) error {
	if err := s.CheckName(key); err != nil || k.check == nil {
		return err
	}
	return k.check(s, key)
}

// CheckLatchName is CheckName for what a latch has beside it.
func (s *Store) CheckLatchName(key string) error {
	if err := s.checkRouting(key); err != nil {
		return err
	}
	if s.apart(key, LatchChannel) {
		return fmt.Errorf("the braces in %q put the latch and its channel, which puts braces around the whole name, "+
			"into different slots of the cluster; use no braces, as in order:42", key)
	}
	return nil
}

// checkRouting refuses a key with a closing brace in front of its hash tag. Redisson takes
// the first one for the end of the tag, and the server the first one behind the opening brace.
func (s *Store) checkRouting(key string) error {
	end := strings.IndexByte(key, '}')
	if !s.Clustered() || end < 0 || end > strings.IndexByte(key, '{') {
		return nil
	}
	return fmt.Errorf("%q has a closing brace in front of the opening one, and Redisson looks for it in another slot "+
		"of the cluster than the server; use one hash tag such as order:{42}, or no braces", key)
}

// apart reports whether a key and what is derived from it are in different slots of a
// Cluster. Without braces they never are.
func (s *Store) apart(key string, derive func(key string) string) bool {
	return s.Clustered() && strings.ContainsAny(key, "{}") && wire.Slot(key) != wire.Slot(derive(key))
}

// SameSlot reports whether one script may use all keys.
func (s *Store) SameSlot(keys []string) bool {
	if !s.Clustered() {
		return !s.keyByKey.Load()
	}
	for _, key := range keys[1:] {
		if wire.Slot(key) != wire.Slot(keys[0]) {
			return false
		}
	}
	return true
}
