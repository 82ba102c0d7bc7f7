package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// hostile has what a terminal must not get: commands to it in 7 and in 8 bits, a new line, the end of a line, the
// direction of text, and an invisible tag.
const hostile = "\x1b[2J\x7f\u0085\u009b31m\n\r\u202e\u2066\u2028\u200b\U000e0041"

// wantVisible checks that a stream has visible characters, and new lines only where a line of the command ends.
func wantVisible(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) || r == utf8.RuneError {
			t.Errorf("%s: got %q at %d of %q", what, r, i, text)
			return
		}
	}
	if strings.Contains(text, "31m\n") {
		t.Errorf("%s: a new line of the input is in %q", what, text)
	}
}

// Whatever has control characters, of the calls, files and keys that a command gets, the terminal does not get them.
func TestRun_OutputIsVisible(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	rdb, url := srv.Client(), "redis://"+srv.Addr()
	key := "shop:" + hostile
	for _, err := range []error{
		rdb.HSet(t.Context(), key, ann, 1).Err(),
		rdb.RPush(t.Context(), "redisson_lock_queue:{"+key+"}", hostile).Err(),
		rdb.HSet(t.Context(), "cart:"+hostile, hostile, 1).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	rules := filepath.Join(t.TempDir(), "\u009b31m.yaml")
	escaped := `\e[2J\x7f\u0085\u009b31m\u202e\u2066\u2028\u200b\U000e0041`
	text := "rules:\n  - http: \"POST /" + escaped + "\"\n    name: \"" + escaped + "\"\n    key: \"" + escaped + "#{path." + escaped + "}\"\n" +
		"  - func: \"f" + escaped + "\"\n    key: \"" + escaped + "\"\n"
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"ls", "--redis", url},
		{"ls", "--redis", url, "--json"},
		{"who", key, "--redis", url},
		{"who", key, "--redis", url, "--json"},
		{"who", "cart:" + hostile, "--redis", url},
		{"release", "cart:" + hostile, "--redis", url, "--holder", hostile, "--yes"},
		{"release", key, "--redis", url, "--holder", bob, "--yes"},
		{"release", key, "--redis", url, "--holder", bob, "--yes", "--json"},
		{"release", key, "--redis", url},
		{"wire", "--redis", url, "--prefix", hostile},
		{"hash", hostile},
		{"check", rules},
		{"check", rules, "--format", "json"},
		{"check", rules, "--format", "github"},
		{"dump", rules},
		{"dump", rules, "--format", "json"},
		{"key", rules, "func: f\x1b[2J"},
		{"key", "testdata/locks.yaml", "POST /orders/42/pay", "--prefix", hostile},
	} {
		got := interlock(t, "", args...)
		wantVisible(t, strings.Join(args[:1], " ")+" (stdout)", got.stdout)
		wantVisible(t, strings.Join(args[:1], " ")+" (stderr)", got.stderr)
	}
	for _, as := range [][]string{{"ls", "--redis", url, "--json"}, {"who", key, "--redis", url, "--json"}} {
		var lock jsonLock
		if err := json.Unmarshal([]byte(interlock(t, "", as...).stdout), &lock); err != nil {
			t.Fatal(err)
		}
		if lock.Key != key || !reflect.DeepEqual(lock.Waiters, []string{hostile}) {
			t.Errorf("%s: JSON has another text: %q, %q", as[0], lock.Key, lock.Waiters)
		}
	}
}
