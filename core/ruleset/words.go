package ruleset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// wordList is a type that is one of a few words.
type wordList struct {
	known []string
	check func(word string) error
}

// wordsOf is the list of a type.
func wordsOf[T ~string](what string, list []T) wordList {
	known := words(list)
	return wordList{known, func(word string) error {
		if slices.Contains(known, word) {
			return nil
		}
		return &failpolicy.UnknownWordError{What: what, Word: word, Known: known, Suggestion: failpolicy.Nearest(word, known)}
	}}
}

func second[T any](_ T, err error) error { return err }

func words[T ~string](list []T) []string {
	names := make([]string, len(list))
	for i, w := range list {
		names[i] = string(w)
	}
	return names
}

// reportWord reports a word that is none of the known ones, in the words of the place where
// it is written: Go has constants for them.
func (c *checker) reportWord(field string, err error) {
	at := c.rule.placeOf(field)
	unknown, ok := errors.AsType[*failpolicy.UnknownWordError](err)
	if !ok || at.inFile() {
		c.reportErr(field, err)
		return
	}
	what := unknown.What
	if strings.Contains(what, "_") {
		what = goName(what)
	}
	text := fmt.Sprintf("unknown %s %q", what, unknown.Word)
	if unknown.Suggestion != "" {
		text += ": write " + at.spell(unknown.Suggestion)
	}
	known := make([]string, len(unknown.Known))
	for i, word := range unknown.Known {
		known[i] = at.spell(word)
	}
	c.reportf(field, "%s (one of %s)", text, strings.Join(known, ", "))
}
