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

// maxName is the number of bytes of a key or a name that are shown.
const maxName = 120

// printable returns s in a form that is safe to show. It writes runes that are not printable, such as
// bidirectional controls, and every third combining mark in a row as escape sequences of Go. If the
// result would exceed limit bytes, printable cuts it and appends the length of s.
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

// escape returns the Go escape sequence of a rune.
func escape(r rune) string {
	quoted := strconv.QuoteRuneToASCII(r)
	return quoted[1 : len(quoted)-1]
}

// keyNames defines the names of keys: only their hash, or also the raw key.
type keyNames struct{ raw bool }

// name returns the raw name of a key, which is empty if it is hidden, and the hash of the key.
func (n keyNames) name(key string) (raw, hash string) {
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

// rowID returns the HTML id of a row, by which the script of the page finds the row in the next
// response.
func rowID(parts ...any) string { return "r" + core.KeyHash(fmt.Sprintln(parts...)) }

// moment converts Unix nanoseconds to a time. 0 is the zero time.
func moment(nano int64) time.Time {
	if nano == 0 {
		return time.Time{}
	}
	return time.Unix(0, nano)
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// traceID returns the id as text, or "" for an invalid id.
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

// ago returns a number of seconds as text in at most two units.
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
