package redisstore

import (
	"strconv"
	"strings"
)

// Prefixes of channels. Redisson derives all names below from the key of a lock: derived makes the names
// with a prefix, behind the names with a suffix. The channel of a latch has a separate rule.
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
// is kept; a key without a brace becomes the tag. The test is "contains a brace", as in Redisson,
// even where that leads to another slot; see [Store.CheckName].
func Channel(key string) string { return derived(lockChannel, key) }

// Prefixes of the keys that belong to a lock.
const (
	queuePrefix    = "redisson_lock_queue:"
	timeoutsPrefix = "redisson_lock_timeout:"
	tokenPrefix    = "redisson_lock_token:"
	unlockPrefix   = "redisson_unlock_latch:"
)

// FairQueue returns the key of the list of waiters for a fair lock.
func FairQueue(key string) string { return derived(queuePrefix, key) }

// FairTimeouts returns the key of the sorted set of the times until which they wait.
func FairTimeouts(key string) string { return derived(timeoutsPrefix, key) }

// FairChannel returns the channel on which the waiter with this field is woken.
func FairChannel(key, field string) string { return Channel(key) + ":" + field }

// ReadWriteChannel returns the channel on which the unlocks of a read/write lock are published.
func ReadWriteChannel(key string) string { return derived(readWriteChannel, key) }

// ReadTimeout returns the key that lives as long as the n-th read hold of field, counted from 1.
func ReadTimeout(key, field string, n int) string {
	return behind(key, field) + ":rwlock_timeout:" + strconv.Itoa(n)
}

// UnlockLatch returns the key in which Redisson notes for a while that the unlock with this id was
// executed.
func UnlockLatch(key, id string) string { return derived(unlockPrefix, key) + ":" + id }

// tokenCounter returns the key in which Redisson counts the fencing tokens of key. It is in the slot
// of the key, as the channel is.
func tokenCounter(key string) string { return derived(tokenPrefix, key) }

// SemaphoreChannel returns the channel on which returned permits are published, leased or not.
func SemaphoreChannel(key string) string { return derived(semaphoreChannel, key) }

// PermitLeases returns the key of the sorted set of the leased permits of key.
func PermitLeases(key string) string { return behind(key, "timeout") }

// LatchChannel returns the channel on which the opening of a latch is published. Redisson puts braces
// around the key even if it contains some; see [Store.CheckLatchName].
func LatchChannel(key string) string { return latchChannel + "{" + key + "}" }

// derived returns the name with a prefix that belongs to key. A key without a hash tag becomes one.
func derived(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + key
	}
	return prefix + "{" + key + "}"
}

// behind returns the name that belongs to key and begins with it.
func behind(key, suffix string) string {
	if strings.Contains(key, "{") {
		return key + ":" + suffix
	}
	return "{" + key + "}:" + suffix
}

// escape returns a pattern that matches exactly the text.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
