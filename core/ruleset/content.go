package ruleset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// MaxFileSize is the largest size of a rule file in bytes.
const MaxFileSize = strictyaml.MaxSize

// content is the content of a file at one time, or the error of reading it.
type content struct {
	text []byte
	sum  [sha256.Size]byte
	err  error
	read time.Time // the time at which the read started
}

// readContent reads the file. It refuses a file that is not regular without opening it, because opening
// a device may have effects.
func readContent(file string) content {
	c := content{read: time.Now()}
	info, err := os.Stat(file)
	if err == nil {
		err = checkRegular(file, info)
	}
	if err == nil {
		c.text, err = readRegular(file)
	}
	c.sum, c.err = sha256.Sum256(c.text), err
	return c
}

func checkRegular(file string, info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", file)
	}
	return nil
}

// readRegular reads at most one byte more than the limit, so that Load refuses a longer file. It opens the
// file without blocking and checks it again, because a pipe that replaced the file after the first check
// would block until another process writes to it.
func readRegular(path string) (text []byte, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the program chooses the path
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err == nil {
		err = checkRegular(path, info)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, MaxFileSize+1))
}

// hash returns a hash that is short enough for people to read in logs and on dashboards.
func (c content) hash() string {
	if c.err != nil {
		return ""
	}
	return hex.EncodeToString(c.sum[:6])
}

// same reports whether both contents have the same text or the same read error.
func (c content) same(other content) bool {
	if c.err != nil || other.err != nil {
		return c.err != nil && other.err != nil && c.err.Error() == other.err.Error()
	}
	return c.sum == other.sum
}

// absolute returns a path that does not depend on later changes of the working directory. It
// keeps each "..", because after a symbolic link it leads to another directory.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Getwd()
	return dir + string(filepath.Separator) + path, err
}
