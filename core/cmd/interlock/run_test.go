package main

import (
	"bytes"
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

func TestRun_Help(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if nothing, want := interlock(t, ""), (result{exitCannot, "", commands().overview()}); nothing != want {
		t.Errorf("without a command: got %s, want %s", nothing, want)
	}
	for _, c := range commands() {
		byName := interlock(t, "", "help", c.name)
		byFlag := interlock(t, "", c.name, "--help")
		if byName != byFlag || byName.code != exitFine {
			t.Errorf("%s: help and --help differ: %s and %s", c.name, byName, byFlag)
		}
		if line := "//\t" + c.name; !strings.Contains(string(manual), line) || !strings.Contains(string(manual), c.summary) {
			t.Errorf("%s: the package comment lacks the command, or its summary %q", c.name, c.summary)
		}
		if !strings.Contains(commands().overview(), c.summary) {
			t.Errorf("%s: the overview lacks it", c.name)
		}
	}
}

// Rules from the standard input are treated like a file with another name.
func TestRun_StandardInput(t *testing.T) {
	t.Parallel()
	const file = "testdata/locks.yaml"
	rules, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ byFile, byInput []string }{
		{[]string{"check", file}, []string{"check", "-"}},
		{[]string{"check", file, "--against", file}, []string{"check", "-", "--against", file}},
		{[]string{"check", file, "--against", file}, []string{"check", file, "--against", "-"}},
		{[]string{"dump", file}, []string{"dump", "-"}},
		{[]string{"key", file, "POST /orders/42/pay"}, []string{"key", "-", "POST /orders/42/pay"}},
		{[]string{"key", file, "POST /orders/42/pay"}, []string{"key", "-", "POST", "/orders/42/pay"}},
	} {
		t.Run(strings.Join(c.byInput, " "), func(t *testing.T) {
			t.Parallel()
			want := interlock(t, "", c.byFile...)
			if c.byInput[1] == "-" {
				want.stdout = strings.ReplaceAll(want.stdout, file, "stdin")
			}
			if got := interlock(t, string(rules), c.byInput...); got != want || got.code != exitFine {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// Every command refuses endless input.
func TestRun_EndlessInput(t *testing.T) {
	t.Parallel()
	const zero = "/dev/zero"
	if _, err := os.Stat(zero); err != nil {
		t.Skipf("this system has no endless file: %v", err)
	}
	for _, args := range [][]string{
		{"check", zero},
		{"check", "-"},
		{"check", "testdata/locks.yaml", "--against", zero},
		{"check", "testdata/locks.yaml", "--routes", zero},
		{"check", "--descriptors", zero},
		{"dump", zero},
		{"key", "testdata/locks.yaml", "POST /cart", "-d", "@" + zero},
		{"key", "testdata/locks.yaml", "POST /cart", "-d", "@-"},
		{"ls", "--redis", "-"},
	} {
		var stdout, stderr bytes.Buffer
		if code := commands().run(t.Context(), args, endless{}, &stdout, &stderr); code == exitFine || !strings.Contains(stderr.String()+stdout.String(), "larger than ") {
			t.Errorf("%q: exit code %d, %.200q, want the size limit", args, code, stdout.String()+stderr.String())
		}
	}
}

// hostile contains characters that a terminal must not get: commands in 7 and in 8 bits, a line feed, a line
// separator, a change of direction, and an invisible tag.
const hostile = "\x1b[2J\x7f\u0085\u009b31m\n\r\u202e\u2066\u2028\u200b\U000e0041"

// wantVisible checks that a stream contains only visible characters, and line feeds only where the command
// ends a line.
func wantVisible(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) || r == utf8.RuneError {
			t.Errorf("%s: got %q at %d of %q", what, r, i, text)
			return
		}
	}
	if strings.Contains(text, "31m\n") {
		t.Errorf("%s: a line feed of the input is in %q", what, text)
	}
}

// A terminal gets no control character of a call, a file or a key.
func TestRun_VisibleOutput(t *testing.T) {
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
