package redisstore_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// These are the fields that Redisson 4.7.0 wrote for values, with Kryo5Codec and with StringCodec.
func TestGroupValue_AsRedisson(t *testing.T) {
	t.Parallel()
	const long = "0123456789abcdef0123456789abcdef"
	for value, want := range map[string]string{
		"Jack_001":    "DScHoUUqdQJ9J7Ux220rcQ",
		"student:001": "xlFkXAEowi21EJq3jIyssg",
		"a":           "Jon6GCcO+0QSJkhre5wXYA",
		"münchen":     "mDsk7c6yLsj128R6NqphQQ",
		"":            "8kZ0F42HzoQfW3jDxQ6f4g",
		long + "X":    "GZZ/iJ194HZB4C5SUb165A",
	} {
		if got := redisstore.GroupValue(redisstore.KryoString(value)); got != want {
			t.Errorf("Kryo5Codec, %q: got %s, want %s", value, got, want)
		}
	}
	for value, want := range map[string]string{
		"Jack_001":                 "7pNoDdizVy2xY792MaFv+w",
		"student:001":              "DqvoYruF5eyLDrILcprmBw",
		"":                         "t6rZwibGo2uy1OSmNVe8pg",
		long + "X":                 "VjlgQDRPSK889um0d9QvSg",
		long + "0123456789abcdef!": "ukTtiULbDfAPGxASOC53KA",
	} {
		if got := redisstore.GroupValue([]byte(value)); got != want {
			t.Errorf("StringCodec, %q: got %s, want %s", value, got, want)
		}
	}
}

// The forms of a string in Kryo: short ASCII texts, others, long ones with a length of two bytes, and units of UTF-16
// in one to three bytes.
func TestKryoString_AsRedisson(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      "0381",
		"a":                     "038261",
		"ab":                    "0361e2",
		"ü":                     "0382c3bc",
		"鍵":                     "0382e98db5",
		"😀":                     "0383eda0bdedb880",
		strings.Repeat("x", 32): "03" + strings.Repeat("78", 31) + "f8",
		strings.Repeat("x", 33): "03a2" + strings.Repeat("78", 33),
		strings.Repeat("x", 62): "03bf" + strings.Repeat("78", 62),
		strings.Repeat("x", 63): "03c001" + strings.Repeat("78", 63),
		strings.Repeat("x", 64): "03c101" + strings.Repeat("78", 64),
	} {
		if got := hex.EncodeToString(redisstore.KryoString(text)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// The key of a value leads back to its group, and is in the slot of the group if the group is in the slot of its channel.
func TestMemberKey_RoundTrip(t *testing.T) {
	t.Parallel()
	value := redisstore.GroupValue([]byte("v"))
	seen := map[string]bool{}
	for _, group := range []string{
		"shop", "shop:{42}", "{shop}", "{shop}#" + value, "shop#" + value, "shop@" + value, "a@b", "a#b", "x{t}y@", "žluťoučký:鍵", "a}b",
	} {
		key := redisstore.MemberKey(group, value)
		if seen[key] {
			t.Errorf("%s: the key %s belongs to two groups", group, key)
		}
		seen[key] = true
		if got, want := kinds.Group.Channel(key), redisstore.Channel(group); got != want {
			t.Errorf("%s: the channel of %s is %s, want %s", group, key, got, want)
		}
		if wire.Slot(group) == wire.Slot(redisstore.Channel(group)) && wire.Slot(key) != wire.Slot(group) {
			t.Errorf("%s: the key %s is in another slot", group, key)
		}
	}
}
