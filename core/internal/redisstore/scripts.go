package redisstore

import (
	"crypto/fips140"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/acquire_all.lua
var acquireAllLua string

//go:embed lua/acquire_fenced.lua
var acquireFencedLua string

//go:embed lua/sethold.lua
var setHoldLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/refresh.lua
var refreshLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/handoff.lua
var handoffLua string

//go:embed lua/handoff_fenced.lua
var handoffFencedLua string

//go:embed lua/clear.lua
var clearLua string

//go:embed lua/force.lua
var forceLua string

//go:embed lua/state.lua
var stateLua string

// script is one operation: its source and its digest, both as arguments ready to
// be sent.
type script struct {
	source any
	digest any
}

// newScript computes the digest by which Redis caches a script. Redis names
// scripts by their SHA-1; it protects nothing, so a FIPS-only process may use it.
func newScript(source string) script {
	var digest string
	fips140.WithoutEnforcement(func() {
		sum := sha1.Sum([]byte(source))
		digest = hex.EncodeToString(sum[:])
	})
	return script{source: source, digest: digest}
}
