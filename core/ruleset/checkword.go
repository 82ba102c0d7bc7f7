package ruleset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// reportWord reports a word that is none of the known ones, in the words of the place where
// it is written: Go has constants for them.
func (c *checker) reportWord(field string, err error) {
	unknown, ok := errors.AsType[*failpolicy.UnknownWordError](err)
	if !ok || c.inFile() {
		c.reportErr(field, err)
		return
	}
	what := unknown.What
	if strings.Contains(what, "_") {
		what = goName(what)
	}
	text := fmt.Sprintf("unknown %s %q", what, unknown.Word)
	if unknown.Suggestion != "" {
		text += ": write " + c.spell(unknown.Suggestion)
	}
	known := make([]string, len(unknown.Known))
	for i, word := range unknown.Known {
		known[i] = c.spell(word)
	}
	c.reportf(field, "%s (one of %s)", text, strings.Join(known, ", "))
}

// checkKeyFormat says what to write in place of a word that is no key format.
func checkKeyFormat(word string) error {
	known := words(KeyFormats())
	if slices.Contains(known, word) {
		return nil
	}
	return &failpolicy.UnknownWordError{What: "key_format", Word: word, Known: known, Suggestion: failpolicy.Nearest(word, known)}
}

func words[T ~string](list []T) []string {
	names := make([]string, len(list))
	for i, w := range list {
		names[i] = string(w)
	}
	return names
}
