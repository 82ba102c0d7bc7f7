package ruleset

import (
	"bytes"
	"encoding/json"
	"io"
)

// WriteJSON writes an object with "settings", all of them, and "rules", a list with
// one object for each rule. Their members are settings and fields by their names
// outside Go: {"value": "10s", "source": {"layer": "yaml", "file": "locks.yaml",
// "line": 7, "column": 5}}. There is no source where it is not known. Fields that nobody set are left out, but not the name.
// "partial": true marks a rule whose key is declared elsewhere, see
// [Resolved.Partial]. With NoSources a member is the value alone.
func (d Dump) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

// MarshalJSON is WriteJSON without line breaks.
func (d Dump) MarshalJSON() ([]byte, error) {
	rules := make([]object, len(d.Rules))
	for i, r := range d.Rules {
		rules[i] = d.ruleObject(r)
	}
	return object{{"settings", d.settingsObject()}, {"rules", rules}}.MarshalJSON()
}

func (d Dump) settingsObject() object {
	all := object{}
	for _, setting := range settingValues(d.Settings) {
		all = append(all, member{setting.name, d.field(setting.value, d.SettingSources[setting.name])})
	}
	return all
}

func (d Dump) ruleObject(r *Resolved) object {
	rule := object{}
	for _, f := range r.shown() {
		if d.NoSources && f.zero {
			continue
		}
		rule = append(rule, member{f.name, d.field(f.value, f.source)})
	}
	if r.Partial() {
		rule = append(rule, member{"partial", true})
	}
	return rule
}

func (d Dump) field(value any, source Source) any {
	if d.NoSources {
		return value
	}
	field := object{{"value", value}}
	if source.Layer != LayerNone {
		field = append(field, member{"source", source})
	}
	return field
}

// MarshalJSON has the parts of the source that are known: layer, profile, file, line
// and column.
func (s Source) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Layer   string `json:"layer"`
		Profile string `json:"profile,omitempty"`
		File    string `json:"file,omitempty"`
		Line    int    `json:"line,omitempty"`
		Column  int    `json:"column,omitempty"`
	}{s.Layer.String(), s.Profile, s.File, s.Line, s.Column})
}

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON leaves <, > and & as they are.
func (o object) MarshalJSON() ([]byte, error) {
	text := bytes.NewBufferString("{")
	enc := json.NewEncoder(text)
	enc.SetEscapeHTML(false)
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		if err := enc.Encode(m.name); err != nil {
			return nil, err
		}
		text.WriteByte(':')
		if err := enc.Encode(m.value); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}
