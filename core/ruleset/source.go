package ruleset

import "strconv"

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

// MarshalText is [Layer.String].
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Source is where one value of a rule comes from.
type Source struct {
	Layer   Layer  `json:"layer"`
	Profile string `json:"profile,omitempty"` // the profile's name, of LayerProfile
	File    string `json:"file,omitempty"`    // empty for code and what is built in
	Line    int    `json:"line,omitempty"`    // from 1; 0 when unknown
	Column  int    `json:"column,omitempty"`  // from 1; 0 when unknown
}

// String is the source as in an error or a dump: "locks.yaml:14:3", "code",
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

// inFile reports whether the place has the words of a file, and not Go's.
func (s Source) inFile() bool { return s.Layer > LayerCode || s.File != "" }

// position is the place in the file, "" without one.
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
