package ruleset

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/internal/missingunit"
	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

// parse reads the text of a duration as rule files and options of a .proto have it: a time
// such as 1m30s, or none, forever and watchdog. The error says what to write instead, as layer
// spells it: [LayerProto] in quotes. Words of another field and times out of range are no errors
// here: check reports them.
func (t timeType) parse(layer Layer, text string) (time.Duration, error) {
	for d, s := range sentinels {
		if s.word == text {
			return d, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err == nil && d != 0 && strings.TrimLeft(text[:1], "-0123456789") == "" { // no "+5s", no ".5s"
		return d, nil
	}
	return 0, errors.New(t.problem(layer, strictyaml.Clip(text)))
}

// examples are a time, and the words of the field.
func (t timeType) examples() []string {
	list := []string{durationWord(t.example)}
	for _, w := range t.words {
		list = append(list, durationWord(w))
	}
	return list
}

// oneOf joins words as they are written in a layer.
func oneOf(layer Layer, words ...string) string {
	words = slices.Clone(words)
	for i := range words {
		if layer == LayerProto {
			words[i] = strconv.Quote(words[i])
		}
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// duration reads a time of a file.
func (f *fileReader) duration(v value, t timeType) (time.Duration, bool) {
	if !f.Is(v, yaml.ScalarNode, "a time such as "+oneOf(LayerYAML, t.examples()...)) {
		return 0, false
	}
	d, err := t.parse(LayerYAML, v.Node.Value)
	if err != nil {
		f.Reportf(v.Node, v.Field, "%s", err)
	}
	return d, err == nil
}

var (
	goTime      = regexp.MustCompile(`^(\d+(\.\d+)?(ns|us|µs|μs|ms|s|m|h))+$`)
	wholeNumber = regexp.MustCompile(`^\d+(\.\d+)?$`)
)

// problem says what to write instead of text.
func (t timeType) problem(layer Layer, text string) string {
	d, err := time.ParseDuration(text)
	isZero := err == nil && d == 0
	shown, instead := oneOf(layer, text), "a time such as "+oneOf(layer, t.examples()...)
	if meant := t.meantBy(text, isZero); len(meant) > 0 {
		instead = oneOf(layer, meant...)
	}
	switch {
	case isZero:
		return shown + " says nothing here: write " + instead
	case wholeNumber.MatchString(text):
		return shown + " has no unit: write " + instead
	case goTime.MatchString(text):
		return shown + " is too long: write " + oneOf(layer, shortTime(maxDuration)) + " at most"
	default:
		return fmt.Sprintf("%.100q is not a time: write %s", text, instead)
	}
}

// meantBy are the words or times that text probably stands for, nil if that is not clear. A wrong guess
// must not become a much longer time.
func (t timeType) meantBy(text string, isZero bool) []string {
	if isZero {
		text = "0"
	}
	if word, ok := t.meant[text]; ok {
		return []string{word}
	}
	parts := otherTime.FindStringSubmatch(strings.ToLower(text))
	switch {
	case parts == nil:
		if word := failpolicy.Nearest(text, t.examples()[1:]); word != "" {
			return []string{word}
		}
		return nil
	case parts[2] != "":
		unit, known := otherUnits[parts[2]]
		if n, err := strconv.Atoi(parts[1]); err == nil && known && n > 0 && n <= int(maxDuration/unit) {
			return []string{shortTime(time.Duration(n) * unit)}
		}
		return nil
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	if err != nil {
		return nil
	}
	var times []string
	for _, unit := range missingunit.Plausible(n) {
		times = append(times, parts[1]+unit.Name)
	}
	return times
}

// otherTime is a number with a unit as people write it, or without one.
var otherTime = regexp.MustCompile(`^((?:[1-9]\d{0,11}|0)(?:\.\d+)?) ?([a-z]*)$`)

var otherUnits = map[string]time.Duration{ //nolint:gochecknoglobals // a table that is only read
	"ms": time.Millisecond, "millis": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
}

// unitHint recognises a bare number in Go.
func (s Source) unitHint(d time.Duration) string {
	if s.inFile() {
		return ""
	}
	return missingunit.Hint(d)
}
