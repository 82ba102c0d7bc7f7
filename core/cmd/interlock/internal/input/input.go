// Package input reads files and readers with a size limit, because input may be endless.
//
// It does not interpret their contents. The commands and packages image and routes call it.
package input

import (
	"fmt"
	"io"
	"os"
)

// The largest sizes of inputs, in bytes.
const (
	Line        = 1 << 16
	Document    = 16 << 20
	Descriptors = 128 << 20
)

// File reads a file of at most limit bytes.
func File(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := All(file, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// All reads everything. It returns an error if there are more than limit bytes.
func All(from io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("larger than %d KiB", limit>>10)
	}
	return content, err
}
