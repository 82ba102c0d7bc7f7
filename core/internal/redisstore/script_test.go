package redisstore_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

var (
	luaComment = regexp.MustCompile(`--[^\n]*`)
	luaCall    = regexp.MustCompile(`redis\.p?call\(`)
	luaCommand = regexp.MustCompile(`^'([A-Z]+)'(, KEYS\[\d+\][,)])?`)
	luaKeys    = regexp.MustCompile(`\bKEYS(\[\d+\])?`)
	luaRedis   = regexp.MustCompile(`redis\.[a-z_]+\(?`)
)

// keyless lists the commands whose first argument is not a key.
var keyless = map[string]bool{"TIME": true, "PUBLISH": true}

// unchecked returns the parts of a script that the proxies of Alibaba Cloud refuse or in which they cannot see
// the keys. The name of a command has to be a literal, each key has to be KEYS[<number>], and unpack is
// not allowed.
func unchecked(source string) (found []string) {
	code := luaComment.ReplaceAllString(source, "")
	for _, call := range luaCall.Split(code, -1)[1:] {
		command := luaCommand.FindStringSubmatch(call)
		if command == nil || command[2] == "" && !keyless[command[1]] {
			found = append(found, strings.SplitN(call, "\n", 2)[0])
		}
	}
	for _, name := range luaRedis.FindAllString(code, -1) {
		if name != "redis.call(" && name != "redis.pcall(" {
			found = append(found, name)
		}
	}
	for _, use := range luaKeys.FindAllStringSubmatch(code, -1) {
		if use[1] == "" {
			found = append(found, use[0])
		}
	}
	if strings.Contains(code, "unpack") {
		found = append(found, "unpack")
	}
	return found
}

// The scripts of plain, spin and fenced locks pass the check of Alibaba Cloud. Scripts over several keys are
// exempt, because the library falls back to scripts over one key if an endpoint refuses them.
func TestKind_Sources_LiteralCommandsAndKeys(t *testing.T) {
	t.Parallel()
	for _, kind := range []*redisstore.Kind{kinds.Reentrant, kinds.Spin, kinds.Fenced} {
		for name, source := range kind.Sources() {
			if name == "acquire_all" || strings.HasSuffix(name, "_each") {
				continue
			}
			for _, part := range unchecked(source) {
				t.Errorf("script %s of a %s: Alibaba Cloud cannot check %s", name, kind.Noun(), part)
			}
		}
	}
}

func TestUnchecked(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]int{
		"return redis.call('GET', KEYS[1])":                                          0,
		"local t = redis.call('TIME') return {redis.pcall('PUBLISH', ARGV[1], '0')}": 0,
		"return redis.call(ARGV[1], KEYS[1])":                                        1,
		"return redis.call('GET', key)":                                              1,
		"return redis.call('GET', ARGV[1])":                                          1,
		"return redis.call('GET', KEYS[i])":                                          2,
		"return redis.call('SET', KEYS[1], redis.call('GET', key))":                  1,
		"return redis.call('GET', 'a:' .. KEYS[1])":                                  1,
		"local call = redis.call return call('GET', KEYS[1])":                        1,
		"local key = KEYS[1] return redis.call('GET', key)":                          1,
		"return redis.call('DEL', unpack(KEYS))":                                     3,
	} {
		if found := unchecked(source); len(found) != want {
			t.Errorf("%s: found %q, want %d", source, found, want)
		}
	}
}
