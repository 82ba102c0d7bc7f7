package redisstore

import (
	"fmt"
	"strings"
)

// Channel is where Redisson publishes the unlock of key: the hash tag of the key
// is kept, or the whole key becomes one. The test is "contains a brace", as in
// Redisson, even where that gives another slot; see CheckName.
func Channel(key string) string { return derived("redisson_lock__channel:", key) }

// derived is the name of something that belongs to key.
func derived(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + key
	}
	return prefix + "{" + key + "}"
}

// tokenCounter is where Redisson counts the fencing tokens of key. It is in the slot of the
// key, as the channel is.
func tokenCounter(key string) string { return derived("redisson_lock_token:", key) }

// CheckName refuses a key whose channel would be in another slot of a Cluster, or
// which Redisson would route to another slot than the server does.
func (s *Store) CheckName(key string) error {
	if s.cluster == nil || !strings.ContainsAny(key, "{}") {
		return nil
	}
	if Slot(key) != Slot(Channel(key)) || strings.IndexByte(key, '}') < strings.IndexByte(key, '{') {
		return fmt.Errorf("the braces in %q put the lock and its channel into different slots of the cluster; "+
			"use one hash tag such as order:{42}, or no braces", key)
	}
	return nil
}

// SameSlot reports whether one script may use all keys.
func (s *Store) SameSlot(keys []string) bool {
	if s.cluster == nil {
		return true
	}
	for _, key := range keys[1:] {
		if Slot(key) != Slot(keys[0]) {
			return false
		}
	}
	return true
}

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// Slot is the hash slot of a key (Redis Cluster specification, "Hash tags").
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	return int(crc16(key)) % slots
}

// crc16 is CRC-16/XMODEM, the checksum of the Cluster specification.
func crc16(s string) uint16 {
	const polynomial = 0x1021
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ polynomial
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
