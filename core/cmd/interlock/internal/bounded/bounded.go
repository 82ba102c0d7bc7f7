// Package bounded reads input that may not end.
package bounded

import (
	"fmt"
	"io"
	"os"
)

// How many bytes the input of a kind may have.
const (
	Line        = 1 << 16
	Document    = 16 << 20
	Descriptors = 128 << 20
)

// File reads a file of up to most bytes.
func File(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := All(file, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// All reads up to the end, which has to come within most bytes.
func All(from io.Reader, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("larger than %d KiB", most>>10)
	}
	return content, err
}
