package redisstore

import (
	"embed"
	"strings"

	"github.com/interlock-go/interlock/core/internal/wire"
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
		if source, ok := s.Source.(string); ok {
			sources[name] = source
		}
		if s.several != nil {
			sources[name+"_each"] = sourceOf(*s.several)
		}
	}
	return sources
}

type script struct {
	wire.Script

	sharded *script // the same with SPUBLISH, if its text has a PUBLISH
	several *script // the same for several keys, if it is for one; nil: it is for any number
}

// over returns the script for a number of keys.
func (s *script) over(keys int) *script {
	if keys > 1 && s.several != nil {
		return s.several
	}
	return s
}

// each adds to a script over one key a script that runs it, as the function one of a file, for each of
// several keys. The first one names its key as KEYS[1], because Alibaba Cloud refuses other scripts.
func (s script) each(file string) script {
	s.several = new(scriptFrom("local function one(KEYS, ARGV)\n" + sourceOf(s) + "end\n" + sourceOf(scriptOf(file))))
	return s
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
