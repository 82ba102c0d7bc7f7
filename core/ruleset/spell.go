package ruleset

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// spell gives a name as it is written where the rule was declared: Go's or the
// file's. word is a field, a sentinel's Go name, or a value that Go has a constant for: a
// strategy, what a loss does, a kind, a key format.
func (c *checker) spell(word string) string {
	switch {
	case c.at.Layer == LayerProto:
		return protoWord(word)
	case c.inFile():
		return fileWord(word)
	}
	switch word {
	case "NoWait", "WaitForever", "Watchdog":
		return "ruleset." + word
	case "null_response":
		return "failpolicy.NullResponse"
	case "error", "skip", "fallback", "proceed", "cancel", "ignore", "fail":
		return "failpolicy." + strings.ToUpper(word[:1]) + word[1:]
	}
	if isKind(word) || word == string(Encode) || word == string(Strict) {
		return "ruleset." + strings.ToUpper(word[:1]) + word[1:]
	}
	return goName(word)
}

// Spelled gives the name of a field, or a value that Go has a constant for, as it is written
// where the rule has the field from, for those who compile it: "kind" and "fair" are kind and
// fair in a file, kind and KIND_FAIR in a .proto, Kind and ruleset.Fair in Go.
func (r *Resolved) Spelled(field, word string) string {
	c := checker{rule: r}
	c.look(field)
	return c.spell(word)
}

func isKind(word string) bool { return slices.Contains(Kinds(), Kind(word)) }

func fileWord(word string) string {
	switch word {
	case "NoWait":
		return "none"
	case "WaitForever":
		return "forever"
	case "Watchdog":
		return "watchdog"
	default:
		return word
	}
}

// protoWord is a word as an option in a .proto has it: times are texts there, and
// strategies and kinds are values of enums.
func protoWord(word string) string {
	switch {
	case word == "NoWait" || word == "WaitForever" || word == "Watchdog":
		return strconv.Quote(fileWord(word))
	case word == "fallback" || word == "null_response":
		return "STRATEGY_" + strings.ToUpper(word)
	case isKind(word):
		return "KIND_" + strings.ToUpper(word)
	default:
		return word
	}
}

// duration spells an example of a time.
func (c *checker) duration(d time.Duration) string {
	switch {
	case c.at.Layer == LayerProto:
		return strconv.Quote(shortTime(d))
	case c.inFile():
		return shortTime(d)
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + "*time.Second"
}

// shortTime is a time without the zero minutes and seconds that its String has.
func shortTime(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// sentinelName is the Go name of a sentinel, "" for a time.
func sentinelName(d time.Duration) string {
	switch d {
	case NoWait:
		return "NoWait"
	case WaitForever:
		return "WaitForever"
	case Watchdog:
		return "Watchdog"
	default:
		return ""
	}
}

// quote is [quote] in the manner of the rule's layer: files do not know backquotes.
func (c *checker) quote(s string) string {
	if c.inFile() {
		return quoteYAML(s)
	}
	return quote(s)
}

// quoteYAML puts s into the quotes of YAML that need no escapes where possible.
func quoteYAML(s string) string {
	if strings.ContainsFunc(s, unicode.IsControl) || !strings.ContainsAny(s, `"\`) {
		return strconv.Quote(s)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// quote puts s into quotes that need no escapes where possible.
func quote(s string) string {
	if strings.Contains(s, `"`) && strconv.CanBackquote(s) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}
