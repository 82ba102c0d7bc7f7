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
		return shown + " is too long: write " + oneOf(layer, shortTime(MaxDuration)) + " at most"
	default:
		return fmt.Sprintf("%.100q is no time: write %s", text, instead)
	}
}

// meantBy are the words or times that text probably stands for, nil if that is not clear.
func (t timeType) meantBy(text string, isZero bool) []string {
	folded := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "+")
	if isZero {
		folded = "0"
	}
	if word, ok := t.meant[folded]; ok {
		return []string{word}
	}
	if times := bareTimes(folded); len(times) > 0 {
		return times
	}
	if d := meantTime(folded); d > 0 {
		return []string{shortTime(d)}
	}
	if word := failpolicy.Nearest(text, t.examples()[1:]); word != "" {
		return []string{word}
	}
	return nil
}

// unitHint recognises a bare number in Go.
func (s Source) unitHint(d time.Duration) string {
	if s.inFile() {
		return ""
	}
	return missingunit.Hint(d)
}
