//go:build unix

package ruleset

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe that takes the place of the file just before it is opened does not block the reader.
func TestReadRegular_RefusesPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := readRegular(path); text != nil || err == nil || !strings.Contains(err.Error(), path+" is not a regular file") {
		t.Errorf("got %q, %v", text, err)
	}
}
