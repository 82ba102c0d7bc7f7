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

	sharded *script // the same with SPUBLISH, if the text has a PUBLISH
	several *script // the same for several keys, if this one is for a single key; nil: this one is for any number
}

// over returns the script for a number of keys.
func (s *script) over(keys int) *script {
	if keys > 1 && s.several != nil {
		return s.several
	}
	return s
}

// each adds to a script over one key a script over several. The file calls the first script as the
// function one, for each key. The first script names its key as KEYS[1], because Alibaba Cloud
// refuses other scripts.
func (s script) each(file string) script {
	s.several = new(scriptFrom("local function one(KEYS, ARGV)\n" + sourceOf(s) + "end\n" + sourceOf(scriptOf(file))))
	return s
}

// scriptOf makes a script of the named files, in their order.
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

// scriptFrom makes a script of a text.
func scriptFrom(source string) script {
	s := script{Script: wire.NewScript(source)}
	if sharded := strings.ReplaceAll(source, "'PUBLISH'", "'SPUBLISH'"); sharded != source {
		s.sharded = new(scriptFrom(sharded))
	}
	return s
}

// appendTexts appends texts to the arguments of a script.
func appendTexts(args []any, texts []string) []any {
	for _, text := range texts {
		args = append(args, text)
	}
	return args
}

// inspection makes the script that looks at a key of any kind.
func inspection() script { return scriptOf("rw", "rw_others", "holder", "inspect", "inspect_key") }

// sourceOf returns the text of a script.
func sourceOf(s script) string { return s.Source.(string) } //nolint:errcheck,forcetypeassert // scriptOf makes one
