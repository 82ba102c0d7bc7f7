package ruleset

import (
	"errors"
	"fmt"
	"os"
)

// LoadFile is [Load] of a file.
func LoadFile(path string, opts ...Option) (*Set, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the path is the program's own
	if err != nil {
		return nil, fmt.Errorf("ruleset: %w", err)
	}
	return Load(path, text, opts...)
}

// Load builds a set from the text of a rule file; name is what errors call it. The
// error is an [*InvalidError] with every problem, in the order of the lines.
func Load(name string, text []byte, opts ...Option) (*Set, error) {
	return nil, errors.New("not there yet")
}
