package redisstore

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// CheckName refuses a key whose derived names would be in another slot of a Cluster, and a key that
// Redisson and the server would route to different slots. For all kinds except latches, it is enough to
// check the lock channel, because no prefix contains a brace and a suffix comes last. All names derived
// from a key are thus in one slot.
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

// CheckKey calls CheckName for the key of a kind. If the channel of the kind puts braces around the name, it
// also calls CheckLatchName.
func (s *Store) CheckKey(k *Kind, key string) error {
	if err := s.CheckName(key); err != nil || !k.braced {
		return err
	}
	return s.CheckLatchName(key)
}

// CheckLatchName is like CheckName, but for the channel of a latch.
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

// checkRouting refuses a key with a closing brace before its hash tag. For Redisson the tag ends at the
// first closing brace of the key, for the server at the first one after the opening brace.
func (s *Store) checkRouting(key string) error {
	end := strings.IndexByte(key, '}')
	if !s.Clustered() || end < 0 || end > strings.IndexByte(key, '{') {
		return nil
	}
	return fmt.Errorf("%q has a closing brace before the opening one, and Redisson looks for it in another slot "+
		"of the cluster than the server; use one hash tag such as order:{42}, or no braces", key)
}

// apart reports whether a key and a name derived from it are in different slots of a Cluster. A key
// without braces is always in the slot of its derived names.
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
