package telemetry

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"

	"github.com/interlock-go/interlock/core"
)

// keyAttrs returns the attributes that name keys on spans. It caches the hashes of recent keys, because
// at least two spans need the hash of a key, and often the next request needs it too.
type keyAttrs struct {
	raw   bool
	seed  maphash.Seed
	slots [recentKeys]atomic.Pointer[hashedKey]
}

// keyAttrs caches recentKeys keys, none of them longer than longKey bytes: 64 kB in all.
const (
	recentKeys = 256
	longKey    = 256
)

type hashedKey struct {
	key  string
	attr attribute.KeyValue
}

func newKeyAttrs(raw bool) *keyAttrs { return &keyAttrs{raw: raw, seed: maphash.MakeSeed()} }

// attr returns the attribute of a key: its hash or, with [WithRawKeys], the key itself.
func (a *keyAttrs) attr(key string) attribute.KeyValue {
	switch {
	case a.raw:
		return attrKey.String(valid(key))
	case len(key) > longKey:
		return attrKeyHash.String(core.KeyHash(key))
	}
	slot := &a.slots[maphash.String(a.seed, key)%recentKeys]
	if known := slot.Load(); known != nil && known.key == key {
		return known.attr
	}
	fresh := &hashedKey{key: strings.Clone(key), attr: attrKeyHash.String(core.KeyHash(key))}
	slot.Store(fresh)
	return fresh.attr
}
