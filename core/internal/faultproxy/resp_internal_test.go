package faultproxy

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
)

func TestReadValue(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, wire, text string }{
		{"simple", "+OK\r\n", "OK"},
		{"error", "-ERR no\r\n", "ERR no"},
		{"integer", ":7\r\n", "7"},
		{"bulk", "$5\r\na\r\nbc\r\n", "a\r\nbc"},
		{"empty bulk", "$0\r\n\r\n", ""},
		{"null bulk", "$-1\r\n", ""},
		{"null array", "*-1\r\n", ""},
		{"empty array", "*0\r\n", ""},
		{"nested array", "*2\r\n*2\r\n$1\r\na\r\n:1\r\n+b\r\n", "a"},
		{"map", "%1\r\n+k\r\n*1\r\n:1\r\n", "k"},
		{"push", ">2\r\n+pong\r\n$0\r\n\r\n", "pong"},
		{"verbatim", "=6\r\ntxt:hi\r\n", "txt:hi"},
		{"null, boolean, double", "*3\r\n_\r\n#t\r\n,1.5\r\n", ""},
		{"attribute", "|1\r\n+ttl\r\n:9\r\n+OK\r\n", "OK"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := bufio.NewReader(strings.NewReader(tc.wire + "+next\r\n"))
			v, err := readValue(r)
			if err != nil || string(v.raw) != tc.wire || v.text != tc.text {
				t.Errorf("got %q with text %q, %v; want %q with text %q", v.raw, v.text, err, tc.wire, tc.text)
			}
		})
	}
}

func TestReadCommand(t *testing.T) {
	t.Parallel()
	r := bufio.NewReader(strings.NewReader("\r\n*0\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING now\r\n"))
	for _, want := range []string{"GET k", "PING now"} {
		cmd, err := readCommand(r)
		if got := strings.Join(cmd.args, " "); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}

func FuzzReadValue(f *testing.F) {
	for _, seed := range []string{"+OK\r\n", "$3\r\nabc\r\n", "*2\r\n:1\r\n$-1\r\n", "%1\r\n+a\r\n_\r\n", "|1\r\n+a\r\n:1\r\n+b\r\n", "*x\r\n", "$99\r\na"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		v, err := readValue(bufio.NewReader(bytes.NewReader(wire)))
		if err == nil && !bytes.HasPrefix(wire, v.raw) {
			t.Errorf("read %q, which is not the beginning of %q", v.raw, wire)
		}
	})
}
