package strictyaml

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Quote puts s into the quotes of YAML that need no escapes where possible.
func Quote(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.ContainsAny(s, `"\`) {
		return strconv.Quote(s)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

var (
	// lineParts are the dashes and the name of a line, and its value.
	lineParts = regexp.MustCompile(`^ *((?:- +)*(?:[\pL\pN_.-]+: +)?)(\S.*?)\s*$`)
	// quotedText is a text in quotes.
	quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'`)
)

// quoteValue is a line with everything after its name in quotes, behind a colon; "" if that is
// not clear.
func quoteValue(line string) string {
	parts := lineParts.FindStringSubmatch(line)
	if len(parts) == 0 || strings.ContainsAny(parts[2][:1], `[{"'`) {
		return ""
	}
	return ": " + parts[1] + Quote(parts[2])
}

// corrected is the line of a value with the value in quotes, behind a colon; "" where that is not
// clear.
func (d *Doc) corrected(v Value) string {
	if v.Flow || v.Key != nil && v.Key.Line != v.Node.Line {
		return ""
	}
	return quoteValue(d.line(v.Node.Line))
}
