package ruleset

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

// What a message quotes is spelled as it is written in the place that it is about: Go's, a
// .proto's, or a file's.

// spell gives a field, or a value that Go has a constant for: a strategy, what a loss does, a
// kind, a key format. In a .proto strategies and kinds are values of enums. Anything else is
// itself.
func (s Source) spell(word string) string {
	isKind := Kind(word).isKnown()
	switch {
	case s.Layer == LayerProto && isKind:
		return "KIND_" + strings.ToUpper(word)
	case s.Layer == LayerProto && slices.Contains(words(failpolicy.Strategies()), word):
		return "STRATEGY_" + strings.ToUpper(word)
	case s.inFile():
		return word
	case isKind, slices.Contains(keyFormatType.known, word):
		return "ruleset." + camel(word)
	case slices.Contains(words(failpolicy.Strategies()), word), slices.Contains(words(failpolicy.LossChoices()), word):
		return "failpolicy." + camel(word)
	default:
		return goName(word)
	}
}

// Spelled gives the name of a field, or a value that Go has a constant for, as it is written
// where the rule has the field from, for those who compile it: "kind" and "fair" are kind and
// fair in a file, kind and KIND_FAIR in a .proto, Kind and ruleset.Fair in Go.
func (r *Resolved) Spelled(field, word string) string { return r.placeOf(field).spell(word) }

// example shows how to write a field.
func (s Source) example(field, value string) string {
	if !s.inFile() {
		field = goName(field)
	}
	return field + ": " + s.spell(value)
}

// duration spells a time, or what is no time. In a .proto it is a text.
func (s Source) duration(d time.Duration) string {
	name := sentinels[d].goName
	switch {
	case s.Layer == LayerProto:
		return strconv.Quote(durationWord(d))
	case s.inFile():
		return durationWord(d)
	case name != "":
		return "ruleset." + name
	default:
		return strconv.FormatInt(int64(d/time.Second), 10) + "*time.Second"
	}
}

// sentinels are the durations that are no times, by their names in Go and in files.
var sentinels = map[time.Duration]struct{ goName, word, field string }{ //nolint:gochecknoglobals // a table that is only read
	NoWait:      {"NoWait", "none", "wait_time"},
	WaitForever: {"WaitForever", "forever", "wait_time"},
	Watchdog:    {"Watchdog", "watchdog", "lease_time"},
}

// durationWord is a duration as in a file.
func durationWord(d time.Duration) string {
	if s, ok := sentinels[d]; ok {
		return s.word
	}
	return shortTime(d)
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

// quote is [quote] in the manner of the place: files do not know backquotes.
func (s Source) quote(text string) string {
	if s.inFile() {
		return strictyaml.Quote(text)
	}
	return quote(text)
}

// quote puts s into quotes that need no escapes where possible.
func quote(s string) string {
	if strings.Contains(s, `"`) && strconv.CanBackquote(s) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}
