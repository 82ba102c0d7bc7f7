package redisstore

import (
	"strconv"
	"strings"
)

// Prefixes of channels. Redisson derives all names below from the key of a lock; see withPrefix,
// withSuffix and, for the channel of a latch, LatchChannel.
const (
	lockChannel      = "redisson_lock__channel:"
	readWriteChannel = "redisson_rwlock:"
	semaphoreChannel = "redisson_sc:"
	latchChannel     = "redisson_countdownlatch__channel__"
)

// ofKeys reports whether a channel is a channel of a lock whose key begins with prefix.
func ofKeys(channel, prefix string) bool {
	for _, kind := range [...]string{lockChannel, readWriteChannel, semaphoreChannel, latchChannel} {
		if key, is := strings.CutPrefix(channel, kind); is {
			return strings.HasPrefix(key, prefix) || strings.HasPrefix(key, "{"+prefix)
		}
	}
	return false
}

// Channel returns the channel on which Redisson publishes the unlock of key. The hash tag of the key
// is kept; a key without a brace becomes the tag. Like Redisson, Channel only checks whether the key
// contains a brace, even where that leads to another slot; see [Store.CheckName].
func Channel(key string) string { return withPrefix(lockChannel, key) }

// Prefixes of the keys that belong to a lock.
const (
	queuePrefix    = "redisson_lock_queue:"
	timeoutsPrefix = "redisson_lock_timeout:"
	tokenPrefix    = "redisson_lock_token:"
	unlockPrefix   = "redisson_unlock_latch:"
)

// FairQueue returns the key of the list of waiters for a fair lock.
func FairQueue(key string) string { return withPrefix(queuePrefix, key) }

// FairTimeouts returns the key of the sorted set of the deadlines of the waiters for a fair lock.
func FairTimeouts(key string) string { return withPrefix(timeoutsPrefix, key) }

// FairChannel returns the channel on which the waiter with this field is woken.
func FairChannel(key, field string) string { return Channel(key) + ":" + field }

// ReadWriteChannel returns the channel on which the unlocks of a read/write lock are published.
func ReadWriteChannel(key string) string { return withPrefix(readWriteChannel, key) }

// ReadTimeout returns the key that exists until the n-th read hold of field ends. n counts from 1.
func ReadTimeout(key, field string, n int) string {
	return withSuffix(key, field) + ":rwlock_timeout:" + strconv.Itoa(n)
}

// UnlockLatch returns the key in which Redisson records for a while that it executed the unlock with
// this id.
func UnlockLatch(key, id string) string { return withPrefix(unlockPrefix, key) + ":" + id }

// tokenCounter returns the key in which Redisson counts the fencing tokens of key. The counter is in
// the slot of the key.
func tokenCounter(key string) string { return withPrefix(tokenPrefix, key) }

// SemaphoreChannel returns the channel on which returned permits are published, with or without leases.
func SemaphoreChannel(key string) string { return withPrefix(semaphoreChannel, key) }

// PermitLeases returns the key of the sorted set of the leased permits of key.
func PermitLeases(key string) string { return withSuffix(key, "timeout") }

// LatchChannel returns the channel on which the opening of a latch is published. Redisson puts braces
// around the key even if the key contains braces; see [Store.CheckLatchName].
func LatchChannel(key string) string { return latchChannel + "{" + key + "}" }

// withPrefix returns the name that is derived from key with a prefix. A key without a brace becomes the hash tag of
// the name.
func withPrefix(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + key
	}
	return prefix + "{" + key + "}"
}

// withSuffix returns the name that is derived from key with a suffix. A key without a brace becomes the hash tag of
// the name.
func withSuffix(key, suffix string) string {
	if strings.Contains(key, "{") {
		return key + ":" + suffix
	}
	return "{" + key + "}:" + suffix
}

// escape returns a pattern that matches only this string.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
