package wire

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestAppendCommand(t *testing.T) {
	t.Parallel()
	got := string(appendCommand(nil, []any{"evalsha", 1, int64(-30), []byte("ä"), "", true}))
	want := "*6\r\n$7\r\nevalsha\r\n$1\r\n1\r\n$3\r\n-30\r\n$2\r\nä\r\n$0\r\n\r\n$4\r\ntrue\r\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// parseReply reads the reply at the front of b and returns its length.
func parseReply(b []byte) (reply any, length int, err error) { return new(parser).next(b) }

// The parser returns the same value however a reply is cut into pieces. A partial reply is incomplete.
func TestParser_WholeOrIncomplete(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		":42\r\n": int64(42), ":-1\r\n": int64(-1), "+OK\r\n": "OK", "$2\r\nab\r\n": "ab", "$0\r\n\r\n": "",
		"$4\r\na\r\nb\r\n": "a\r\nb", "$-1\r\n": nil, "*-1\r\n": nil, "_\r\n": nil, "=6\r\ntxt:ab\r\n": "txt:ab",
		"-NOSCRIPT no\r\n": errorReply("NOSCRIPT no"), "*0\r\n": []any(nil),
		"*2\r\n:7\r\n$1\r\nx\r\n": []any{int64(7), "x"}, "*1\r\n*2\r\n$-1\r\n:1\r\n": []any{[]any{nil, int64(1)}},
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

func TestParser_Garbled(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"HTTP/1.1 400 Bad Request\r\n", "\r\n", "\n", ":\r\n", ":x\r\n", "$x\r\n", "*1\r\n?\r\n", ":1\n", "%1\r\n+a\r\n:1\r\n"} {
		if got, _, err := parseReply([]byte(text)); !errors.Is(err, errGarbled) {
			t.Errorf("%q: got %v, %v, want garbled", text, got, err)
		}
	}
}

// go-redis recognizes the errors that are made here.
func TestOutcome_Errors(t *testing.T) {
	t.Parallel()
	_, err := outcome(errorReply("READONLY You can't write against a read only replica."))
	if !redis.IsReadOnlyError(err) || FateOf(err) != Answered || !Transient(err) {
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

// A length or a depth beyond anything that Redis sends is garbled. The parser allocates nothing for it.
func TestParser_Absurd(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"$9223372036854775807\r\n", "$9223372036854775806\r\n", "*9223372036854775807\r\n", "$1073741824\r\n", "$-2\r\n", "$2\r\nabcd", "$2\r\nab\rx", strings.Repeat("*1\r\n", 1<<20),
		"+" + strings.Repeat("a", 2<<20),
	} {
		if got, _, err := parseReply([]byte(text)); !errors.Is(err, errGarbled) {
			t.Errorf("%.40q: got %v, %v, want garbled", text, got, err)
		}
	}
}

// answers passes the pieces of a stream to a pipeline without a connection and returns the replies of the
// completed calls.
func answers(t *testing.T, p *pipeline, calls int, in ...string) (got []any, err error) {
	t.Helper()
	p.flow.trip = new(atomic.Int64)
	cmds := make([]*command, calls)
	for i := range cmds {
		cmds[i] = newCommand("evalsha", "digest", nil)
		cmds[i].at = time.Now()
		cmds[i].prepare(time.Now().Add(time.Minute))
		p.queue.push(cmds[i])
	}
	for _, piece := range in {
		p.receiving.in = append(p.receiving.in, piece...)
		if err = p.take(); err != nil {
			break
		}
	}
	for _, c := range cmds {
		if c.over() {
			got = append(got, c.reply)
		}
	}
	return got, err
}

// Calls whose replies arrived before garbage get their replies. If there are more replies than calls, no call
// gets one, because it is not known to which calls they belong.
func TestPipeline_Take_Garbage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]any{
		":1\r\n:2\r\n:3x\r\n":            {int64(1), int64(2)},
		":1\r\n:2\r\n:3\r\n:4\r\n:5\r\n": nil,
	} {
		if got, err := answers(t, &pipeline{}, 4, text); !errors.Is(err, errGarbled) || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

// Replies are the same however the stream is cut.
func TestPipeline_Take_EveryCut(t *testing.T) {
	t.Parallel()
	const stream = ":1\r\n*3\r\n$3\r\na\r\n\r\n$-1\r\n:2\r\n-ERR no\r\n$0\r\n\r\n"
	want := []any{int64(1), []any{"a\r\n", nil, int64(2)}, nil, ""}
	for i := range len(stream) {
		for j := i; j < len(stream); j++ {
			got, err := answers(t, &pipeline{}, 4, stream[:i], stream[i:j], stream[j:])
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("cut at %d and %d: got %v, %v", i, j, got, err)
			}
		}
	}
}

// The parser does not start again at the beginning of a large reply for each of its pieces.
func TestPipeline_Take_LargeReply(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	var stream []byte
	const fields, piece = 100_000, 4096
	stream = appendHead(stream, '*', fields)
	for range fields {
		stream = appendArg(stream, "71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:1")
	}
	var pieces []string
	for rest := string(stream); rest != ""; {
		n := min(piece, len(rest))
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	p := &pipeline{}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := answers(t, p, 1, pieces...)
	runtime.ReadMemStats(&after)
	if err != nil || len(got) != 1 || len(got[0].([]any)) != fields {
		t.Fatalf("%d replies, %v", len(got), err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 100*uint64(len(stream)) {
		t.Errorf("%d MB for a reply of %d MB in %d pieces", used>>20, len(stream)>>20, len(pieces))
	}
	if cap(p.receiving.in) > largeBuffer {
		t.Errorf("%d bytes are kept", cap(p.receiving.in))
	}
}
