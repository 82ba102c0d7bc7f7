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
	for _, s := range d.Settings.shown(d.SettingSources) {
		all = append(all, member{s.name, d.field(s)})
	}
	return all
}

func (d Dump) ruleObject(r *Resolved) object {
	rule := object{}
	for _, f := range r.shown() {
		if d.NoSources && f.zero {
			continue
		}
		rule = append(rule, member{f.name, d.field(f)})
	}
	if r.Partial() {
		rule = append(rule, member{"partial", true})
	}
	return rule
}

func (d Dump) field(f shownValue) any {
	if d.NoSources {
		return f.value
	}
	field := object{{"value", f.value}}
	if f.source.Layer != LayerNone {
		field = append(field, member{"source", f.source})
	}
	return field
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
