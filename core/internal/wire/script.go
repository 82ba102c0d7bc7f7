package wire

import (
	"crypto/fips140"
	"crypto/sha1"
	"encoding/hex"
)

// Script is a Lua script: its source and its digest, both ready to be sent.
type Script struct{ Source, Digest any }

// NewScript computes the digest under which Redis caches a script. Redis names scripts by their
// SHA-1. The digest protects nothing, so a FIPS-only process may use it.
func NewScript(source string) Script {
	var digest string
	fips140.WithoutEnforcement(func() {
		sum := sha1.Sum([]byte(source))
		digest = hex.EncodeToString(sum[:])
	})
	return Script{Source: source, Digest: digest}
}
