package ruleset

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/missingunit"
	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

// Layer is the layer in which a value was declared. A higher layer replaces the values of a lower one.
type Layer uint8

// The layers, lowest first.
const (
	layerNone    Layer = iota // no layer sets the value
	LayerDefault              // built in, or the program's own defaults
	LayerProfile
	LayerCode
	LayerProto
	LayerYAML
)

// String returns the word for the layer.
func (l Layer) String() string {
	switch l {
	case LayerDefault:
		return "default"
	case LayerProfile:
		return "profile"
	case LayerCode:
		return "code"
	case LayerProto:
		return "proto"
	case LayerYAML:
		return "yaml"
	default:
		return "not set"
	}
}

// MarshalText returns the text of [Layer.String].
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// owner returns a phrase for the place of the rules of a layer.
func (l Layer) owner() string {
	switch l {
	case LayerYAML:
		return "the file"
	case LayerProto:
		return "the .proto"
	default:
		return "the program"
	}
}

// Source is the place from which one value of a rule comes.
type Source struct {
	Layer   Layer  `json:"layer"`
	Profile string `json:"profile,omitempty"` // the name of the profile, for LayerProfile
	File    string `json:"file,omitempty"`    // empty for code and for built-in values
	Line    int    `json:"line,omitempty"`    // from 1; 0 when unknown
	Column  int    `json:"column,omitempty"`  // from 1; 0 when unknown
}

// String returns the source as an error or a dump shows it: "locks.yaml:14:3", "code",
// "profile quick", "profile reports, locks.yaml:4:5".
func (s Source) String() string {
	name := s.Layer.String()
	if s.Layer == LayerProfile {
		name += " " + s.Profile
	}
	switch {
	case s.File == "":
		return name
	case s.Layer == LayerProfile, s.Layer == LayerDefault:
		return name + ", " + s.position()
	default:
		return s.position()
	}
}

// position returns the place in the file, or "" without a file.
func (s Source) position() string {
	if s.File == "" {
		return ""
	}
	place := s.File
	if s.Line > 0 {
		place += ":" + strconv.Itoa(s.Line)
	}
	if s.Column > 0 {
		place += ":" + strconv.Itoa(s.Column)
	}
	return place
}

// where returns a phrase for the place of a declaration: "declared in …".
func (s Source) where() string {
	if place := s.position(); place != "" {
		return place
	}
	return s.Layer.owner()
}

// Messages spell each word as its author writes it in the place of the problem: in Go, in a .proto or in a
// file.

// inFile reports whether the place uses the notation of files, not of Go.
func (s Source) inFile() bool { return s.Layer > LayerCode || s.File != "" }

// spell spells a field, or a value for which Go has a constant: a strategy, the effect of a loss, a kind, a
// key format. In a .proto strategies and kinds are values of enums. Any other word stays unchanged.
func (s Source) spell(word string) string {
	isKind := Kind(word).isKnown()
	isStrategy := slices.Contains(failpolicy.Strategies(), failpolicy.Strategy(word))
	switch {
	case s.Layer == LayerProto && isKind:
		return "KIND_" + strings.ToUpper(word)
	case s.Layer == LayerProto && isStrategy:
		return "STRATEGY_" + strings.ToUpper(word)
	case s.inFile():
		return word
	case isKind, word == string(Encode), word == string(Strict):
		return "ruleset." + camel(word)
	case isStrategy, slices.Contains(failpolicy.LossChoices(), failpolicy.OnLost(word)):
		return "failpolicy." + camel(word)
	default:
		return goName(word)
	}
}

// example spells a field with a value.
func (s Source) example(field, value string) string {
	for d, word := range sentinels {
		if word.field == field && word.word == value {
			value = s.duration(d)
		}
	}
	if !s.inFile() {
		field = goName(field)
	}
	return field + ": " + s.spell(value)
}

// duration spells a time, or one of [sentinels]. A .proto writes it as a string.
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

// unitHint returns a hint for a time that was probably written as a number without a unit, which
// only Go permits.
func (s Source) unitHint(d time.Duration) string {
	if s.inFile() {
		return ""
	}
	return missingunit.Hint(d)
}

// quote puts a text into quotes of the place. A file does not have backquotes.
func (s Source) quote(text string) string {
	if s.inFile() {
		return strictyaml.Quote(text)
	}
	return quote(text)
}
