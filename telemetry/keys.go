package telemetry

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"

	"github.com/interlock-go/interlock/core"
)

// keyAttrs makes the attributes that name keys on spans. It remembers the hashes of recent keys: a key is
// hashed for two spans at least, and often for the next request.
type keyAttrs struct {
	raw   bool
	seed  maphash.Seed
	slots [recentKeys]atomic.Pointer[hashedKey]
}

// keyAttrs remembers recentKeys keys, none of them longer than longKey bytes: 64 kB in all.
const (
	recentKeys = 256
	longKey    = 256
)

type hashedKey struct {
	key  string
	attr attribute.KeyValue
}

func newKeyAttrs(raw bool) *keyAttrs { return &keyAttrs{raw: raw, seed: maphash.MakeSeed()} }

// of returns the attribute of a key: its hash or, with [WithRawKeys], the key itself.
func (a *keyAttrs) of(key string) attribute.KeyValue {
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
