package redisstore

import (
	"errors"
	"reflect"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestAppendCommand_IsWhatClientsSend(t *testing.T) {
	t.Parallel()
	got := string(appendCommand(nil, []any{"evalsha", 1, int64(-30), []byte("ä"), "", true}))
	want := "*6\r\n$7\r\nevalsha\r\n$1\r\n1\r\n$3\r\n-30\r\n$2\r\nä\r\n$0\r\n\r\n$4\r\ntrue\r\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Every reply is read alike however it is cut into pieces: what is not there as a whole
// is incomplete.
func TestParseReply_WholeOrIncomplete(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		":42\r\n": int64(42), ":-1\r\n": int64(-1), "+OK\r\n": "OK", "$2\r\nab\r\n": "ab", "$0\r\n\r\n": "",
		"$4\r\na\r\nb\r\n": "a\r\nb", "$-1\r\n": nil, "*-1\r\n": nil, "_\r\n": nil, "#t\r\n": true, "#f\r\n": false, ",1.5\r\n": "1.5",
		"-NOSCRIPT no\r\n": errorReply("NOSCRIPT no"), "!5\r\nERR a\r\n": errorReply("ERR a"), "*0\r\n": []any(nil),
		"*2\r\n:7\r\n$1\r\nx\r\n": []any{int64(7), "x"}, "*1\r\n*2\r\n_\r\n:1\r\n": []any{[]any{nil, int64(1)}},
		"%1\r\n+a\r\n:1\r\n": []any{"a", int64(1)}, ">2\r\n+invalidate\r\n*0\r\n": pushed{},
	} {
		for cut := range len(text) {
			if _, _, err := parseReply([]byte(text[:cut])); !errors.Is(err, errIncomplete) {
				t.Errorf("%q: got %v, want incomplete", text[:cut], err)
			}
		}
		got, length, err := parseReply([]byte(text + ":1\r\n"))
		if err != nil || length != len(text) || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, %d bytes, %v; want %v", text, got, length, err, want)
		}
	}
}

func TestParseReply_Garbled(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"HTTP/1.1 400 Bad Request\r\n", "\r\n", "\n", ":\r\n", ":x\r\n", "$x\r\n", "*1\r\n?\r\n", ":1\n"} {
		if got, _, err := parseReply([]byte(text)); !errors.Is(err, errGarbled) {
			t.Errorf("%q: got %v, %v, want garbled", text, got, err)
		}
	}
}

// go-redis knows the errors that are made here.
func TestOutcome_ErrorsAreRedis(t *testing.T) {
	t.Parallel()
	_, err := outcome(errorReply("READONLY You can't write against a read only replica."))
	if !redis.IsReadOnlyError(err) || fateOf(err) != Answered || !Transient(err) {
		t.Errorf("READONLY: got %v", err)
	}
	_, err = outcome(errorReply("MOVED 3999 127.0.0.1:6381"))
	if addr, ok := redis.IsMovedError(err); !ok || addr != "127.0.0.1:6381" {
		t.Errorf("MOVED: got %q, %v", addr, ok)
	}
	if _, err = outcome(nil); !errors.Is(err, redis.Nil) {
		t.Errorf("nil: got %v", err)
	}
}
