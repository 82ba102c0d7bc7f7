package ruleset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// A field shows its value as a string, word, bool, int, list of strings or object. This file writes such
// a value as YAML and as JSON.

// word is a text that needs no quotes in a file.
type word string

// object is an object that keeps the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the object, with <, > and & unchanged.
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

// yamlText writes a value in YAML, on one line.
func yamlText(value any) string {
	switch v := value.(type) {
	case string:
		return yamlString(v)
	case []string:
		return "[" + quotedList(v) + "]"
	case object:
		members := make([]string, len(v))
		for i, m := range v {
			members[i] = m.name + ": " + yamlText(m.value)
		}
		return "{" + strings.Join(members, ", ") + "}"
	default:
		return fmt.Sprint(v)
	}
}

// plainScalar matches texts that YAML reads unchanged without quotes, in lists and objects too.
var plainScalar = regexp.MustCompile(`^[A-Za-z/][\w./@+-]*([ :][\w./@+*-]+)*$`)

// yamlString quotes a text that YAML would change.
func yamlString(s string) string {
	reserved := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if plainScalar.MatchString(s) && !slices.Contains(reserved, strings.ToLower(s)) {
		return s
	}
	return strictyaml.Quote(s)
}

// quotedList joins texts like the entries of a list in a file.
func quotedList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.Quote(text)
	}
	return strings.Join(quoted, ", ")
}
