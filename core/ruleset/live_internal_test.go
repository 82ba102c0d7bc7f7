package ruleset

import (
	"os"
	"path/filepath"
	"testing"
)

func openInternal(t *testing.T) (*Live, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "locks.yaml")
	save(t, path, "a")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return l, path
}

func save(t *testing.T, path, key string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("{allow_rekey: true, rules: [{func: task, key: "+key+"}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The watcher ignores a content that it read before a reload loaded a later content.
func TestLive_Follow_OlderContent(t *testing.T) {
	t.Parallel()
	l, path := openInternal(t)
	save(t, path, "b")
	older := readContent(path)
	save(t, path, "c")
	if err := l.Reload(); err != nil {
		t.Fatal(err)
	}
	inForce := l.Current()
	if l.follow(older); l.Current() != inForce {
		t.Error("an older content replaced a later one")
	}
	if l.follow(readContent(path)); l.Current() != inForce {
		t.Error("the same content was loaded again")
	}
	save(t, path, "d")
	if l.follow(readContent(path)); l.Current() == inForce {
		t.Error("a later content was not loaded")
	}
}

func TestLive_Subscribe_CanceledAreRemoved(t *testing.T) {
	t.Parallel()
	l, _ := openInternal(t)
	for range 100 {
		cancel, err := l.Subscribe(func(*Set) (func(), error) { return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	if n := len(l.subscribers.list); n > 1 {
		t.Errorf("%d of 100 canceled subscribers remain", n)
	}
	if err := l.Reload(); err != nil || len(l.subscribers.list) > 0 {
		t.Errorf("got %v, %d subscribers remain after a reload", err, len(l.subscribers.list))
	}
}
