package strictyaml

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxSize is the largest size of a text in bytes.
	MaxSize = 4 << 20

	// MaxWord is the largest length in bytes of a text that is not a template, an expression or a
	// document. It is small because every problem of a rule repeats its name and endpoint.
	MaxWord = 1000

	// MaxName is the largest length of a name in bytes.
	MaxName = 100

	// maxValues limits the number of values that the parser creates for a text. Rule files of the
	// largest size contain two thirds as many.
	maxValues = 300_000
)

// Problem is a mistake.
type Problem struct {
	Line, Column int    // from 1; 0 for a problem of the text as a whole
	Field        string // such as "wait_time" or "keys[1]"; empty for a problem outside of any field
	Message      string // what is wrong and what to write instead
}

// textProblem returns the first problem that keeps text from being YAML at all, with its place.
func textProblem(text []byte) Problem {
	if len(text) > MaxSize {
		return Problem{Message: fmt.Sprintf("larger than %d MiB: give each program its own rule file", MaxSize>>20)}
	}
	line, column := 1, 1
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if message := runeProblem(r, text[i:], size); message != "" {
			return Problem{Line: line, Column: column, Message: message}
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		i += size
	}
	if countValues(text) > maxValues {
		return Problem{Message: fmt.Sprintf("more than %d lines and values: give each program its own rule file", maxValues)}
	}
	return Problem{}
}

// countValues returns the number of values that the parser creates for text, or slightly more. It
// counts lines and the entries of lists and mappings.
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

// runeProblem returns the problem with r, or "" if there is none. r is the first character of
// rest and takes size bytes there.
func runeProblem(r rune, rest []byte, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf("byte 0x%02x is not UTF-8: save the file as UTF-8", rest[0])
	case r == '\t', r == '\n', r == '\r' && bytes.HasPrefix(rest, []byte("\r\n")):
		return ""
	case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\ufffe', r == '\uffff': // some of them end a line in YAML, but not in an editor
		return fmt.Sprintf("%U is invisible and not allowed in a rule file: remove it", r)
	}
	return ""
}

// lines holds the lines of a text.
type lines []string

func linesOf(text []byte) lines {
	return strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
}

// line returns line n, counted from 1. It returns "" outside the text and for a line that is too
// long to be written by hand.
func (l lines) line(n int) string {
	const limit = 2000
	if n < 1 || n > len(l) || len(l[n-1]) > limit {
		return ""
	}
	return l[n-1]
}

// cut splits a line before a column. Columns count characters.
func (l lines) cut(line, column int) (before, rest string) {
	text := []rune(l.line(line))
	column = min(max(column-1, 0), len(text))
	return string(text[:column]), string(text[column:])
}

// Clip returns the first [MaxWord] bytes of a text, with … at the end if it is longer.
func Clip(text string) string {
	if len(text) <= MaxWord {
		return text
	}
	return strings.ToValidUTF8(text[:MaxWord], "") + "…"
}

// IsPrintable reports whether a terminal shows the text unchanged.
func IsPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) })
}

// Quote quotes s as in YAML. It chooses quotes that need no escapes, if possible.
func Quote(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.ContainsAny(s, `"\`) {
		return strconv.Quote(s)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

var (
	// lineParts splits a line into its value and the dashes and name before it.
	lineParts = regexp.MustCompile(`^ *((?:- +)*(?:[\pL\pN_.-]+: +)?)(\S.*?)\s*$`)
	// quotedText matches a text in quotes.
	quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'`)
)

// quoteValue returns a colon and the line with its whole value in quotes, for the end of a message. It
// returns "" if the line does not show which part of it is the value.
func quoteValue(line string) string {
	parts := lineParts.FindStringSubmatch(line)
	if len(parts) == 0 || strings.ContainsAny(parts[2][:1], `[{"'`) {
		return ""
	}
	return ": " + parts[1] + Quote(parts[2])
}
