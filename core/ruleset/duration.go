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

// timeType is a time from 1ms to maxDuration, or one of the words that stand for something else.
type timeType struct {
	example time.Duration
	words   []time.Duration   // such as NoWait
	meant   map[string]string // the words for special numbers of other libraries
}

func (t timeType) read(d *strictyaml.Doc, v strictyaml.Value) (time.Duration, bool) {
	if !d.Is(v, yaml.ScalarNode, "a time such as "+oneOf(LayerYAML, t.examples()...)) {
		return 0, false
	}
	x, err := t.parse(LayerYAML, v.Node.Value)
	if err != nil {
		d.Reportf(v.Node, v.Field, "%s", err)
	}
	return x, err == nil
}

func (t timeType) set(to *time.Duration, _ string, layer Layer, v any) (err error) {
	var text string
	if err = assign(&text, v); err == nil {
		*to, err = t.parse(layer, text)
	}
	return err
}

func (timeType) show(v time.Duration) any { return word(durationWord(v)) }

func (t timeType) check(at Source, d time.Duration) []string {
	other, isWord := sentinels[d]
	example, spelled := at.duration(t.example), make([]string, len(t.words))
	for i, w := range t.words {
		spelled[i] = at.duration(w)
	}
	words := strings.Join(spelled, " or ")
	switch {
	case slices.Contains(t.words, d), d >= time.Millisecond && d <= maxDuration, d == 0 && len(t.words) == 0:
		return nil
	case isWord:
		return wrong("%s belongs to %s: write a time such as %s", at.duration(d), at.spell(other.field), orWords(example, words))
	case words == "":
		return wrong("%s is out of range: write 1ms to %s, such as %s%s", shortTime(d), shortTime(maxDuration), example, at.unitHint(d))
	default:
		return wrong("%s is out of range: write 1ms to %s%s", shortTime(d), orWords(shortTime(maxDuration), words), at.unitHint(d))
	}
}

// orWords joins an example and the words that may replace it.
func orWords(example, words string) string {
	switch {
	case words == "":
		return example
	case strings.Contains(words, " or "):
		return example + ", " + words
	default:
		return example + ", or " + words
	}
}

// parse parses a duration of a rule file or a .proto: a time such as 1m30s, or none, forever or watchdog.
// The error advises what to write instead, in quotes for [LayerProto]. parse accepts words of another
// field and times out of range: check reports them.
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

// examples returns a time and the words of the field.
func (t timeType) examples() []string {
	list := []string{durationWord(t.example)}
	for _, w := range t.words {
		list = append(list, durationWord(w))
	}
	return list
}

// oneOf joins words, in quotes where the layer needs them.
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

var (
	goTime      = regexp.MustCompile(`^(\d+(\.\d+)?(ns|us|µs|μs|ms|s|m|h))+$`)
	wholeNumber = regexp.MustCompile(`^\d+(\.\d+)?$`)
)

// problem returns the message for a text that is not a duration.
func (t timeType) problem(layer Layer, text string) string {
	d, err := time.ParseDuration(text)
	isZero := err == nil && d == 0
	shown, instead := oneOf(layer, text), "a time such as "+oneOf(layer, t.examples()...)
	if meant := t.meantBy(text, isZero); len(meant) > 0 {
		instead = oneOf(layer, meant...)
	}
	switch {
	case isZero:
		return shown + " has no meaning here: write " + instead
	case wholeNumber.MatchString(text):
		return shown + " has no unit: write " + instead
	case goTime.MatchString(text):
		return shown + " is too long: write " + oneOf(layer, shortTime(maxDuration)) + " at most"
	default:
		return fmt.Sprintf("%.100q is not a time: write %s", text, instead)
	}
}

// meantBy returns the words or times that text probably stands for, or nil if that is unclear. It leaves
// out a guess that could be much longer than the intended time.
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

// otherTime matches a number with a unit as people write it, or without a unit.
var otherTime = regexp.MustCompile(`^((?:[1-9]\d{0,11}|0)(?:\.\d+)?) ?([a-z]*)$`)

var otherUnits = map[string]time.Duration{ //nolint:gochecknoglobals // a table that is only read
	"ms": time.Millisecond, "millis": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
}
