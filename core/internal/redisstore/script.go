package redisstore

import (
	"embed"
	"strings"

	"github.com/interlock-go/interlock/core/internal/wire"
)

//go:embed lua/*.lua
var lua embed.FS

// script is a Lua script with its variants.
type script struct {
	wire.Script

	sharded *script // the same script with SPUBLISH, if the source contains a PUBLISH
	several *script // the same script for several keys; nil: this one accepts any number of keys
}

// over returns the variant of the script for a number of keys.
func (s *script) over(keys int) *script {
	if keys > 1 && s.several != nil {
		return s.several
	}
	return s
}

// each adds a variant for several keys to a script for one key. The file calls the script for one key as
// the function one, once for each key. The script for one key refers to its key as KEYS[1], because
// Alibaba Cloud refuses other scripts.
func (s script) each(file string) script {
	s.several = new(scriptFrom("local function one(KEYS, ARGV)\n" + sourceOf(s) + "end\n" + sourceOf(scriptOf(file))))
	return s
}

// scriptOf concatenates the named files to a script.
func scriptOf(files ...string) script {
	var source strings.Builder
	for _, file := range files {
		part, err := lua.ReadFile("lua/" + file + ".lua")
		if err != nil {
			panic(err) // it is not embedded
		}
		_, _ = source.Write(part)
	}
	return scriptFrom(source.String())
}

// scriptFrom returns the script with a source, and its variant with SPUBLISH.
func scriptFrom(source string) script {
	s := script{Script: wire.NewScript(source)}
	if sharded := strings.ReplaceAll(source, "'PUBLISH'", "'SPUBLISH'"); sharded != source {
		s.sharded = new(scriptFrom(sharded))
	}
	return s
}

// appendStrings appends strings to the arguments of a script.
func appendStrings(args []any, list []string) []any {
	for _, s := range list {
		args = append(args, s)
	}
	return args
}

// inspection returns the script that inspects a key of any kind.
func inspection() script { return scriptOf("rw", "rw_others", "holder", "inspect", "inspect_key") }

// sourceOf returns the source of a script.
func sourceOf(s script) string { return s.Source.(string) } //nolint:errcheck,forcetypeassert // scriptOf makes one
