package ruleset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// content is what a file had in it at one time, or why it could not be read.
type content struct {
	text []byte
	sum  [sha256.Size]byte
	file fs.FileInfo // of the file that path led to; nil if there was none
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
		c.text, err = readFile(file)
	}
	c.sum, c.file, c.err = sha256.Sum256(c.text), info, err
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

// isFileOf reports whether both were read from one file, or none of them was.
func (c content) isFileOf(other content) bool {
	return c.file == nil && other.file == nil || os.SameFile(c.file, other.file)
}

// replaces reports whether the content was complete when it came: it took the place of
// another one, and stands in another file. One that is written in place does not, nor
// does one that comes after nothing.
func (c content) replaces(before content) bool {
	return !c.isNothing() && !before.isNothing() && !c.isFileOf(before)
}

// isNothing reports whether there is no text, as right before a file is written.
func (c content) isNothing() bool { return c.err != nil || len(c.text) == 0 }

// fromRoot makes a path independent of later changes of the working directory. It
// takes no ".." away: behind a symbolic link that is another directory.
func fromRoot(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Getwd()
	return dir + string(filepath.Separator) + path, err
}
