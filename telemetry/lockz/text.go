package lockz

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// maxName is how many bytes of a key or a name are shown.
const maxName = 120

// printable returns s as readers see it. Runes that do not print, that change the direction of writing or
// that pile up are escaped as in Go. A text longer than limit bytes is cut, and its length follows.
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
			text = escape(r)
		}
		if out.Len()+len(text) > limit {
			return out.String() + fmt.Sprintf("… (%d bytes)", len(s))
		}
		out.WriteString(text)
		rest = rest[size:]
	}
	return out.String()
}

// escape returns the escape sequence of a rune in Go.
func escape(r rune) string {
	quoted := strconv.QuoteRuneToASCII(r)
	return quoted[1 : len(quoted)-1]
}

// keyNames says how keys are named: by their hash alone, or raw as well.
type keyNames struct{ raw bool }

// of returns the raw name of a key, which is empty if it is hidden, and its hash.
func (n keyNames) of(key string) (raw, hash string) {
	if n.raw {
		raw = printable(key, maxName)
	}
	return raw, core.KeyHash(key)
}

// order returns the text that keys are sorted by. The order reveals nothing about hidden keys.
func (n keyNames) order(key string) string {
	if n.raw {
		return key
	}
	return core.KeyHash(key)
}

// attr returns the key of a log record: under the name raw if keys are shown, otherwise its hash under the
// name hashed.
func (n keyNames) attr(raw, hashed, key string) slog.Attr {
	if n.raw {
		return slog.String(raw, printable(key, maxName))
	}
	return slog.String(hashed, core.KeyHash(key))
}

// rowID returns the HTML id of a row. The script of the page finds the row by it in the next answer.
func rowID(parts ...any) string { return "r" + core.KeyHash(fmt.Sprintln(parts...)) }

// moment converts Unix nanoseconds; 0 is the zero time.
func moment(nano int64) time.Time {
	if nano == 0 {
		return time.Time{}
	}
	return time.Unix(0, nano)
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// traceID returns the id as text; an invalid id is "".
func traceID(id trace.TraceID) string {
	if !id.IsValid() {
		return ""
	}
	return id.String()
}

// count returns a number with its noun, in the plural unless n is 1.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ago returns a number of seconds in two units at most.
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
