package wire_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// The text keeps what a reply says about the command, but nothing that the reply quotes from the command,
// however it quotes.
func TestReplyText_Arguments(t *testing.T) {
	t.Parallel()
	const key = "order:\"se'cret\x00\"ü"
	for _, quoted := range []string{
		key,
		"'" + key + "'",
		strconv.Quote(key),
		strconv.QuoteToASCII(key),
		`'order:\"se\'cret\x00\"\xc3\xbc'`,
		"'" + key[:9] + "'", // truncated
		key[:9] + "...",
		"`" + key + "`",
	} {
		for _, form := range []string{
			"ERR unknown command 'evalsha', with args beginning with: 'aa' '1' %s ",
			"ERR unknown command `evalsha`, with args beginning with: `aa`, `1`, %s, ",
			"ERR unknown command %s",
			"ERR unknown subcommand or wrong number of arguments for %s",
			"NOPERM User alice has no permissions to access the %s key",
			"NOPERM User %s has no permissions to run the 'evalsha' command",
			"NOPERM this user has no permissions to run the %s command",
			"WRONGTYPE %s holds the wrong kind of value",
			"WRONGTYPE Operation against a key holding the wrong kind of value %s",
			"MOVED 3999 127.0.0.1:6381 %s",
			"MOVED %s 127.0.0.1:6381",
			"MOVED 3999 %s",
			"BUSYKEY %s",
			"%s",
			"%s is not a lock",
			"MYCODE %s",
		} {
			text := wire.ReplyText(fmt.Sprintf(form, quoted))
			for _, part := range []string{"order", "se'cret", "cret", "xc3", "ü"} {
				if strings.Contains(text, part) {
					t.Errorf("%s of %s:\n%s", form, quoted, text)
				}
			}
		}
	}
}

func TestReplyText_KnownTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"NOPERM User alice-1 has no permissions to run the 'evalsha' command",
		"NOPERM this user has no permissions to access one of the keys used as arguments",
		"NOPERM No permissions to access a key",
		"WRONGPASS invalid username-password pair or user is disabled.",
		"NOAUTH Authentication required.",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"READONLY You can't write against a read only replica.",
		"LOADING Redis is loading the dataset in memory",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"NOREPLICAS Not enough good replicas to write.",
		"CLUSTERDOWN Hash slot not served",
		"MOVED 3999 10.0.0.7:6381",
		"ASK 3999 redis-2.example.com:6381",
		"ERR max number of clients reached",
		"WRONGTYPE Operation against a key holding the wrong kind of value",
		"WRONGTYPE Operation against a key holding the wrong kind of value script: ad6bd4f2b1f5a1d3c4dbb3b7c9a0a4e5f6a7b8c9, on @user_script:7.",
		"upstream failure",
		"REDIRECT 10.0.0.7:6379",
		"ERR ACL failure in script: User app has no permissions to run the 'set' command script: on @user_script:57.",
		"ERR Attempted to access a non local key in a cluster node script: on @user_script:83.",
		"ERR Unable to execute command 'exists' in script because undeclared keys were accessed during rehashing of the slot",
		"@user_script: 33: The user executing the script can't run this command or subcommand",
	} {
		if got := wire.ReplyText(text); got != text {
			t.Errorf("%s:\ngot %s", text, got)
		}
	}
	const ofRedis6 = "ERR Error running script (call to f_ad6bd4f2b1f5a1d3c4dbb3b7c9a0a4e5f6a7b8c9): @user_script:7: @user_script: 7: -"
	if got := wire.ReplyText(ofRedis6 + "READONLY You can't write against a read only replica."); got != "READONLY You can't write against a read only replica." {
		t.Errorf("got %s", got)
	}
	const unknown = "ERR unknown command 'evalsha', with args beginning with: 'aa' '1' 'order:42' "
	if got := wire.ReplyText(unknown); got != "ERR unknown command 'evalsha'"+" (the rest is withheld: it may quote a key)" {
		t.Errorf("got %s", got)
	}
	if got := wire.ReplyText("NOPERM what 'order:42'"); got != "NOPERM"+" (the rest is withheld: it may quote a key)" {
		t.Errorf("got %s", got)
	}
}

func FuzzReplyText(f *testing.F) {
	f.Add("ERR unknown command 'evalsha', with args beginning with: 'order:42'")
	f.Fuzz(func(t *testing.T, text string) {
		const key = "s3cret!key"
		if got := wire.ReplyText(text + key); strings.Contains(got, "s3cret") && !strings.Contains(text, "s3cret") {
			t.Errorf("%q: got %q", text+key, got)
		}
	})
}
