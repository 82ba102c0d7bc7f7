package redisstore

import (
	"crypto/fips140"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed lua/*.lua
var lua embed.FS

// Sources are the scripts of a kind by the names of their operations.
func (k *Kind) Sources() map[string]string {
	sources := make(map[string]string)
	for name, s := range map[string]*script{
		"acquire": &k.acquire, "acquire_all": &k.acquireAll, "sethold": &k.hold, "renew": &k.renew, "refresh": &k.refresh,
		"release": &k.release, "handoff": &k.handOff, "force": &k.force, "state": &k.state, "count": &k.count, "clear": &k.clear,
	} {
		if source, ok := s.source.(string); ok {
			sources[name] = source
		}
	}
	return sources
}

// script is one operation: its source and its digest, both as arguments ready to
// be sent.
type script struct {
	source any
	digest any
}

// scriptOf makes a script of the files with these names, one behind the other.
func scriptOf(files ...string) script {
	var text strings.Builder
	for _, file := range files {
		part, err := lua.ReadFile("lua/" + file + ".lua")
		if err != nil {
			panic(err) // it is not embedded
		}
		_, _ = text.Write(part)
	}
	return scriptFrom(text.String())
}

// scriptFrom makes a script of its source, and computes the digest by which Redis caches it. Redis
// names scripts by their SHA-1; it protects nothing, so a FIPS-only process may use it.
func scriptFrom(source string) script {
	var digest string
	fips140.WithoutEnforcement(func() {
		sum := sha1.Sum([]byte(source))
		digest = hex.EncodeToString(sum[:])
	})
	return script{source: source, digest: digest}
}

// appendTexts appends texts to the arguments of a script.
func appendTexts(args []any, texts []string) []any {
	for _, text := range texts {
		args = append(args, text)
	}
	return args
}
