package telemetry

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"

	"github.com/interlock-go/interlock/core"
)

// keyAttr names the key on a span.
func (t *Telemetry) keyAttr(key string) attribute.KeyValue {
	if t.rawKeys {
		return attrKey.String(valid(key))
	}
	return t.hashes.attr(key)
}

// recentKeys is how many keys hashes remembers, and longKey the length from which on it
// remembers none: 64 kB in all.
const (
	recentKeys = 256
	longKey    = 256
)

// hashes remembers the attributes of recent keys. A key is hashed for two spans at least, and
// keys that are locked often are those for which that counts.
type hashes struct {
	seed  maphash.Seed
	slots [recentKeys]atomic.Pointer[hashedKey]
}

type hashedKey struct {
	key  string
	attr attribute.KeyValue
}

func newHashes() *hashes { return &hashes{seed: maphash.MakeSeed()} }

// attr is the attribute with the hash of the key.
func (h *hashes) attr(key string) attribute.KeyValue {
	if len(key) > longKey {
		return attrKeyHash.String(core.KeyHash(key))
	}
	slot := &h.slots[maphash.String(h.seed, key)%recentKeys]
	if known := slot.Load(); known != nil && known.key == key {
		return known.attr
	}
	fresh := &hashedKey{key: strings.Clone(key), attr: attrKeyHash.String(core.KeyHash(key))}
	slot.Store(fresh)
	return fresh.attr
}

// valid keeps foreign bytes out of attributes: exporters refuse whole batches for
// one string that is not UTF-8. It does not allocate for good strings.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
