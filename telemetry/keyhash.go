package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/interlock-go/interlock/core"
)

// KeyHash is how spans and logs name a key: see [core.KeyHash].
func KeyHash(key string) string { return core.KeyHash(key) }

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
