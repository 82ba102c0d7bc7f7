package ruleset

import (
	"fmt"
	"strings"
)

// Layer is where a value was declared. Higher layers are laid over lower ones.
type Layer uint8

// The layers, lowest first.
const (
	LayerNone    Layer = iota // not set at all
	LayerDefault              // built in, or the program's own defaults
	LayerProfile
	LayerCode
	LayerProto
	LayerYAML
)

// String is the layer's word.
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

// Source is where one value of a rule comes from.
type Source struct {
	Layer  Layer
	File   string // file name, or the profile's name; empty for code
	Line   int    // from 1; 0 when unknown
	Column int    // from 1; 0 when unknown
}

// String is the source as in an error: "locks.yaml:14:3", "profile quick", "code".
func (s Source) String() string {
	switch {
	case s.File == "":
		return s.Layer.String()
	case s.Layer == LayerProfile:
		return "profile " + s.File
	}
	var text strings.Builder
	text.WriteString(s.File)
	if s.Line > 0 {
		fmt.Fprintf(&text, ":%d", s.Line)
	}
	if s.Column > 0 {
		fmt.Fprintf(&text, ":%d", s.Column)
	}
	return text.String()
}
