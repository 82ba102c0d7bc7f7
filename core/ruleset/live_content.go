package ruleset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// content is what a file had in it at one time, or why it could not be read.
type content struct {
	text []byte
	sum  [sha256.Size]byte
	err  error
	read time.Time // when the reading began
}

// readContent reads the file. What is not a regular file is refused unread: a pipe
// would block for as long as nobody writes to it.
func readContent(file string) content {
	c := content{read: time.Now()}
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", file)
	}
	if err == nil {
		c.text, err = readBounded(file)
	}
	c.sum, c.err = sha256.Sum256(c.text), err
	return c
}

// hash is short: it is read by people, in logs and on dashboards.
func (c content) hash() string {
	if c.err != nil {
		return ""
	}
	return hex.EncodeToString(c.sum[:6])
}

// same reports whether both are the same text, or the same failure to read it.
func (c content) same(other content) bool {
	if c.err != nil || other.err != nil {
		return c.err != nil && other.err != nil && c.err.Error() == other.err.Error()
	}
	return c.sum == other.sum
}

// fromRoot makes a path independent of later changes of the working directory. It
// takes no ".." away: behind a symbolic link that is another directory.
func fromRoot(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Getwd()
	return dir + string(filepath.Separator) + path, err
}
