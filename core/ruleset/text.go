package ruleset

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// wordList describes a type that has a few words as its values.
type wordList struct {
	known []string
	check func(word string) error
}

// wordsOf returns the word list of a type. Messages call the type noun.
func wordsOf[T ~string](noun string, list []T) wordList {
	known := words(list)
	return wordList{known, func(word string) error {
		if slices.Contains(known, word) {
			return nil
		}
		return &failpolicy.UnknownWordError{What: noun, Word: word, Known: known, Suggestion: failpolicy.Nearest(word, known)}
	}}
}

// usualKinds holds the words of other libraries for the kind that a rule has without the field.
var usualKinds = []string{"lock", "rlock", "redissonlock", "mutex", "exclusive", "plain", "normal", "default"} //nolint:gochecknoglobals // a table that is only read

// kindWords returns the word list of kinds.
func kindWords() wordList {
	list := wordsOf("kind", Kinds())
	return wordList{list.known, func(word string) error {
		err := list.check(word)
		unknown, ok := errors.AsType[*failpolicy.UnknownWordError](err)
		if ok && slices.Contains(usualKinds, strings.ToLower(word)) {
			unknown.Suggestion = string(Reentrant)
		}
		return err
	}}
}

func words[T ~string](list []T) []string {
	names := make([]string, len(list))
	for i, w := range list {
		names[i] = string(w)
	}
	return names
}

func second[T any](_ T, err error) error { return err }

// isBlank reports whether s has no visible character.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// hasPlaceholder reports whether s contains request data in the syntax of a template.
func hasPlaceholder(s string) bool {
	return strings.Contains(s, "#{") || strings.Contains(s, "${") || strings.Contains(s, "{{")
}

// quote quotes s as in Go. It chooses quotes that need no escapes, if possible.
func quote(s string) string {
	if strings.Contains(s, `"`) && strconv.CanBackquote(s) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}

// camel returns the name in Go of a field that is called wait_time outside.
func camel(name string) string {
	var text strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		text.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return text.String()
}

// cutField splits "keys[2]" into the field and its part.
func cutField(field string) (base, part string) {
	if cut := strings.IndexAny(field, "[."); cut >= 0 {
		return field[:cut], field[cut:]
	}
	return field, ""
}
