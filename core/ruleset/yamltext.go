package ruleset

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// source is the text of a rule file by lines: what the parser does not tell, such as
// the comment that a value was meant to be.
type source struct {
	lines []string

	// The last position that was asked for, and its byte. The next one is near, and a
	// file may be one long line of JSON.
	last   place
	offset int
}

// place is a position in the text, both from 1. Columns are characters.
type place struct{ line, column int }

func newSource(text []byte) *source {
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return &source{lines: lines}
}

// line is a line, from 1; "" outside of the text.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// from is the rest of a line from a column on.
func (s *source) from(line, column int) string {
	text := s.line(line)
	if s.last.line != line {
		s.last, s.offset = place{line, 1}, 0
	}
	for s.last.column > column && s.offset > 0 {
		_, size := utf8.DecodeLastRuneInString(text[:s.offset])
		s.offset -= size
		s.last.column--
	}
	for s.last.column < column && s.offset < len(text) {
		_, size := utf8.DecodeRuneInString(text[s.offset:])
		s.offset += size
		s.last.column++
	}
	return text[s.offset:]
}

// maxValues bounds what the parser makes of a file. Rule files of the largest size have
// two thirds of it.
const maxValues = 300_000

// textProblem says why text cannot be YAML at all, and where; "" if nothing speaks
// against it.
func textProblem(text []byte) (message string, line, column int) {
	switch {
	case len(text) > maxFileSize:
		return fmt.Sprintf("larger than %d MiB: split the rules between programs", maxFileSize>>20), 0, 0
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}), bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		return "UTF-16: save the file as UTF-8", 1, 1
	}
	line, column = 1, 1
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if message := runeProblem(r, text[i:], size); message != "" {
			return message, line, column
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		i += size
	}
	if countValues(text) > maxValues {
		return fmt.Sprintf("more than %d lines and values: split the rules between programs", maxValues), 0, 0
	}
	return "", 0, 0
}

// countValues is how many values the parser makes of text, or a few more: those of lines,
// lists and mappings.
func countValues(text []byte) int {
	n := 0
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		n += 1 + bytes.Count(line, []byte(",")) + bytes.Count(line, []byte("[")) + bytes.Count(line, []byte("{"))
	}
	return n
}

// runeProblem judges the character r at the start of rest.
func runeProblem(r rune, rest []byte, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf("byte 0x%02x is not UTF-8: save the file as UTF-8", rest[0])
	case r == '\t', r == '\n', r == '\r' && bytes.HasPrefix(rest, []byte("\r\n")):
		return ""
	case r == '\r':
		return "a carriage return without a line feed: save the file with the line ends of Unix or Windows"
	case r == '\u0085', r == '\u2028', r == '\u2029':
		return fmt.Sprintf("%U ends the line for YAML, but not in an editor: remove it", r)
	case unicode.IsControl(r):
		return fmt.Sprintf("control character %U: remove it; between double quotes it is written %q", r, fmt.Sprintf(`\x%02x`, r))
	}
	return ""
}
