package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// KeyHash is how spans and logs name a key: the first 16 hexadecimal digits of its
// SHA-256. The key is the Redis key, prefix included. A shell finds the spans of a
// key with
//
//	printf %s 'shop:order:42' | sha256sum | cut -c1-16
//
// It hides keys from who reads traces, not from who guesses: the hash of a short
// number is found by trying all of them.
func KeyHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// keyAttr names the key on a span.
func (t *Telemetry) keyAttr(key string) attribute.KeyValue {
	if t.rawKeys {
		return attrKey.String(valid(key))
	}
	return attrKeyHash.String(KeyHash(key))
}

// valid keeps foreign bytes out of attributes: exporters refuse whole batches for
// one string that is not UTF-8. It does not allocate for good strings.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
