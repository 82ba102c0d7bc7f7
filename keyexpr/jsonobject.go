package keyexpr

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// jsonObject is an object of JSON as a client sent it; see [DecodeJSON].
//
// A handler with encoding/json takes ID, Id and even names with the Kelvin sign for its
// field id, and which names it knows cannot be known here. So the names of an object
// count as they are folded, for everything that an expression can do with it: see
// package httpvars. A name that is in lower case, or spelled so in the expression, is
// the same for a handler with a struct and for one with a map.
//
// It is a map whose keys no value of an expression can be, so that the language's
// machine, which knows nothing of this, fails where it would look a name up.
type jsonObject map[foldedName]member

// MarshalJSON implements [json.Marshaler]: the object as it was sent, for those who show
// a request.
func (o jsonObject) MarshalJSON() ([]byte, error) {
	sent := make(map[string]any, len(o))
	for _, m := range o {
		sent[m.name] = m.value
	}
	return json.Marshal(sent)
}

// foldedName is what all spellings of a name have in common.
type foldedName string

// member is a name as it was sent, and its value.
type member struct {
	name  string
	value any
}

// foldName maps the names that encoding/json takes for the same field to one text,
// which is one of them, in lower case.
func foldName(name string) foldedName {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			return foldedName(strings.Map(foldRune, name))
		}
	}
	return foldedName(name)
}

// foldRune is one of the characters that are the same but for their case, the same for
// all of them: the lower case of the least one, as σ and ς have one upper case, or the
// least one where its lower case is another character for encoding/json, as that of İ.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	lower := unicode.ToLower(least)
	for f := unicode.SimpleFold(least); f != least; f = unicode.SimpleFold(f) {
		if f == lower {
			return lower
		}
	}
	return least
}

// spelling is how an expression spells names, by what they have in common. A name that
// it spells in two ways is in lower case.
type spelling map[foldedName]string

func (s spelling) add(name string) {
	folded := foldName(name)
	if known, ok := s[folded]; ok && known != name {
		name = string(folded)
	}
	s[folded] = name
}

// sure reports whether a name is spelled in the only way that is admitted.
func (s spelling) sure(folded foldedName, name string) bool {
	if own, ok := s[folded]; ok {
		return name == own
	}
	return name == string(folded)
}

var errSpelling = errors.New(`keys() cannot tell the names of an object of JSON that are not in lower case, because a handler ` +
	`may take them for others; write "name" in …, or give the body a type`)

func (s spelling) names(object jsonObject) ([]any, error) {
	names := make([]string, 0, len(object))
	for folded, m := range object {
		if !s.sure(folded, m.name) {
			return nil, errSpelling
		}
		names = append(names, m.name)
	}
	slices.Sort(names)
	return boxed(names), nil
}
