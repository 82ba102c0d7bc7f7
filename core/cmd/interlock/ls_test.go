package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// JSON contains every key unchanged, however long it is. A key that is not UTF-8 is written as bytes.
func TestLs_JSON(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	fill(t, srv.Client())
	if err := srv.Client().HSet(t.Context(), "bad:\xff", ann, 1).Err(); err != nil {
		t.Fatal(err)
	}
	got := interlock(t, "", "ls", "bad:", "--json", "--redis", "redis://"+srv.Addr())
	want := map[string]bool{}
	for _, key := range srv.Client().Keys(t.Context(), "bad:*").Val() {
		want[key] = true
	}
	for line := range strings.Lines(got.stdout) {
		var lock jsonLock
		if err := json.Unmarshal([]byte(line), &lock); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if lock.Bytes != nil {
			lock.Key = string(lock.Bytes)
		}
		if !want[lock.Key] {
			t.Errorf("%q is not one of the keys, or is listed twice", lock.Key)
		}
		delete(want, lock.Key)
	}
	if len(want) > 0 || got.code != exitFine {
		t.Errorf("missing: %d; %s", len(want), got.stderr)
	}
}

// On a terminal the progress is shown, and its line is cleared at the end. Other outputs get no progress.
func TestProgress(t *testing.T) {
	t.Parallel()
	screen := &terminal{}
	p := newProgress(screen)
	p.shown = p.shown.Add(-time.Hour)
	p.add(1000, 5000)
	p.add(1000, 5000) // too early
	p.clear()
	if got, want := screen.String(), "\r\x1b[K1000 of 5000 keys\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if newProgress(file).to != nil || newProgress(&bytes.Buffer{}).to != nil {
		t.Error("the progress is shown on an output that is not a terminal")
	}
}

// terminal is a buffer that counts as a terminal.
type terminal struct{ bytes.Buffer }

func (*terminal) Stat() (os.FileInfo, error) { return terminalInfo{}, nil }

type terminalInfo struct{ os.FileInfo }

func (terminalInfo) Mode() os.FileMode { return os.ModeCharDevice }
