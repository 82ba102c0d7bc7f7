package lockz

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core"
)

// maxName is how many bytes of a key or a name are shown.
const maxName = 120

func hashOf(key string) string { return core.KeyHash(key) }

// count is so many of something.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// printable is s for readers: what does not print, turns the direction of writing or piles up
// is escaped as in Go, and what is longer than limit bytes is cut, with the length behind it.
func printable(s string, limit int) string {
	var out strings.Builder
	marks := 0
	for rest := s; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if marks++; !unicode.Is(unicode.M, r) {
			marks = 0
		}
		text := rest[:size]
		switch {
		case r == utf8.RuneError && size == 1:
			text = fmt.Sprintf(`\x%02x`, rest[0])
		case !unicode.IsPrint(r) || marks > 2:
			text = escaped(r)
		}
		if out.Len()+len(text) > limit {
			return out.String() + fmt.Sprintf("… (%d bytes)", len(s))
		}
		out.WriteString(text)
		rest = rest[size:]
	}
	return out.String()
}

// escaped is a rune as Go writes those that do not print.
func escaped(r rune) string {
	quoted := strconv.QuoteRuneToASCII(r)
	return quoted[1 : len(quoted)-1]
}

// ago is a number of seconds for readers.
func ago(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d <= 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
}
