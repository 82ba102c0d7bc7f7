package redisstore

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// derivedNames lists all names that Redisson derives, for one holder and one request.
var derivedNames = map[string]func(key string) string{
	"channel":            Channel,
	"fair queue":         FairQueue,
	"fair timeouts":      FairTimeouts,
	"fair channel":       func(key string) string { return FairChannel(key, "71b96ce8:57") },
	"read-write channel": ReadWriteChannel,
	"read timeout":       func(key string) string { return ReadTimeout(key, "71b96ce8:57", 1) },
	"unlock latch":       func(key string) string { return UnlockLatch(key, "9f") },
	"token counter":      tokenCounter,
	"semaphore channel":  SemaphoreChannel,
	"permit leases":      PermitLeases,
	"latch channel":      LatchChannel,
}

func TestNames_AreRedissons(t *testing.T) {
	t.Parallel()
	type names = map[string]string
	for key, want := range map[string]names{
		"foo": {
			"channel":            "redisson_lock__channel:{foo}",
			"fair queue":         "redisson_lock_queue:{foo}",
			"fair timeouts":      "redisson_lock_timeout:{foo}",
			"fair channel":       "redisson_lock__channel:{foo}:71b96ce8:57",
			"read-write channel": "redisson_rwlock:{foo}",
			"read timeout":       "{foo}:71b96ce8:57:rwlock_timeout:1",
			"unlock latch":       "redisson_unlock_latch:{foo}:9f",
			"token counter":      "redisson_lock_token:{foo}",
			"semaphore channel":  "redisson_sc:{foo}",
			"permit leases":      "{foo}:timeout",
			"latch channel":      "redisson_countdownlatch__channel__{foo}",
		},
		"order:{42}": {
			"channel":            "redisson_lock__channel:order:{42}",
			"fair queue":         "redisson_lock_queue:order:{42}",
			"fair timeouts":      "redisson_lock_timeout:order:{42}",
			"fair channel":       "redisson_lock__channel:order:{42}:71b96ce8:57",
			"read-write channel": "redisson_rwlock:order:{42}",
			"read timeout":       "order:{42}:71b96ce8:57:rwlock_timeout:1",
			"unlock latch":       "redisson_unlock_latch:order:{42}:9f",
			"token counter":      "redisson_lock_token:order:{42}",
			"semaphore channel":  "redisson_sc:order:{42}",
			"permit leases":      "order:{42}:timeout",
			"latch channel":      "redisson_countdownlatch__channel__{order:{42}}",
		},
		"a}b": { // only the opening brace counts
			"read timeout":  "{a}b}:71b96ce8:57:rwlock_timeout:1",
			"permit leases": "{a}b}:timeout",
			"fair queue":    "redisson_lock_queue:{a}b}",
		},
		"a{b": {
			"read timeout":  "a{b:71b96ce8:57:rwlock_timeout:1",
			"fair channel":  "redisson_lock__channel:a{b:71b96ce8:57",
			"latch channel": "redisson_countdownlatch__channel__{a{b}",
		},
	} {
		for what, name := range want {
			if got := derivedNames[what](key); got != name {
				t.Errorf("%s of %q: got %q, want %q", what, key, got, name)
			}
		}
	}
	if got := ReadTimeout("foo", "f", 12); got != "{foo}:f:rwlock_timeout:12" {
		t.Errorf("the twelfth read hold: got %q", got)
	}
}

// redissonSlot returns the slot in which Redisson looks for a key. Redisson ends the hash tag at the
// first closing brace, wherever it is.
func redissonSlot(key string) int {
	start, end := strings.IndexByte(key, '{'), strings.IndexByte(key, '}')
	if start >= 0 && start+1 < end {
		key = key[start+1 : end]
	}
	var crc uint16 // CRC-16/XMODEM
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc & 0x8000
			if crc <<= 1; carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return int(crc) % 16384
}

// brokenBy returns the derived names of a key that are in another slot, or that Redisson looks for in another
// slot than the server.
func brokenBy(key string, latch bool) []string {
	var broken []string
	if redissonSlot(key) != wire.Slot(key) {
		broken = append(broken, "Redisson's routing")
	}
	for what, derive := range derivedNames {
		if (what == "latch channel") == latch && wire.Slot(derive(key)) != wire.Slot(key) {
			broken = append(broken, what)
		}
	}
	return broken
}

// Of all names of up to six of these characters, CheckName refuses exactly the names that would not work in a
// Cluster. All keys of an accepted name are in one slot.
func TestStore_CheckName_EveryShortName(t *testing.T) {
	t.Parallel()
	s := clusteredStore(t)
	everyName("ab{}", 6, func(key string) {
		for latch, check := range map[bool]func(string) error{false: s.CheckName, true: s.CheckLatchName} {
			err, broken := check(key), brokenBy(key, latch)
			switch {
			case err == nil && broken != nil:
				t.Errorf("%q, latch %t: accepted, although %v are in other slots", key, latch, broken)
			case err != nil && broken == nil:
				t.Errorf("%q, latch %t: refused, although all keys are in one slot: %v", key, latch, err)
			}
		}
	})
}

// everyName calls check with every text of up to n letters.
func everyName(letters string, n int, check func(key string)) {
	var extend func(text string)
	extend = func(text string) {
		if text != "" {
			check(text)
		}
		if len(text) < n {
			for _, letter := range letters {
				extend(text + string(letter))
			}
		}
	}
	extend("")
}

func TestStore_CheckLatchName_Braces(t *testing.T) {
	t.Parallel()
	s := clusteredStore(t)
	for _, key := range []string{"foo", "order:42", "заказ"} {
		if err := s.CheckLatchName(key); err != nil {
			t.Errorf("%q: got %v", key, err)
		}
	}
	for _, key := range []string{"order:{42}", "{t}:x", "x{t}y", "a}b"} {
		if err := s.CheckLatchName(key); err == nil || !strings.Contains(err.Error(), "no braces, as in order:42") {
			t.Errorf("%q: got %v, want an error that says what to write", key, err)
		}
	}
}

func TestStore_CheckName_RedissonLooksElsewhere(t *testing.T) {
	t.Parallel()
	s := clusteredStore(t)
	for _, check := range []func(string) error{s.CheckName, s.CheckLatchName} {
		for _, key := range []string{"}a{b}", "a}{b", "a}{b}c"} {
			if err := check(key); err == nil || !strings.Contains(err.Error(), "Redisson looks for it in another slot") {
				t.Errorf("%q: got %v", key, err)
			}
		}
	}
}

func TestStore_CheckLatchName_SingleServer(t *testing.T) {
	t.Parallel()
	s := &Store{}
	for _, key := range []string{"order:{42}", "a}b", "}a{b}"} {
		if err := s.CheckLatchName(key); err != nil {
			t.Errorf("%q: got %v", key, err)
		}
	}
}

// clusteredStore returns a Store of a Cluster without connections.
func clusteredStore(t *testing.T) *Store {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = rdb.Close() })
	return &Store{cluster: rdb}
}
