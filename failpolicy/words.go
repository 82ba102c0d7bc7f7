package failpolicy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// UnknownWordError reports a word that is not one of the known ones.
type UnknownWordError struct {
	What       string   // the expected kind of word: "strategy", "on_lost", "grpc code"
	Word       string   // as written
	Known      []string // the valid words
	Suggestion string   // the word that was probably meant; empty if none is near
}

// Error returns the message with the words to write instead.
func (e *UnknownWordError) Error() string {
	text := fmt.Sprintf("unknown %s %q", e.What, e.Word)
	if e.Suggestion != "" {
		text += fmt.Sprintf(": write %q", e.Suggestion)
	}
	return text + " (one of " + strings.Join(e.Known, ", ") + ")"
}

// parseWord accepts exactly the known words. For its suggestion, it first asks foreign to translate the
// word of another library, and then looks for a known word with a similar spelling.
func parseWord[T ~string](what, word string, known []T, foreign func(string) T) (T, error) {
	names := make([]string, len(known))
	for i, k := range known {
		if string(k) == word {
			return k, nil
		}
		names[i] = string(k)
	}
	suggestion := string(foreign(strings.ToUpper(strings.TrimSpace(word))))
	if suggestion == "" {
		suggestion = Nearest(word, names)
	}
	return "", &UnknownWordError{What: what, Word: word, Known: names, Suggestion: suggestion}
}

// Nearest returns the name that was probably meant by word, or "" if none is near. It ignores letter
// case, underscores and hyphens, and tolerates about one wrong letter in three. If no name is near, it
// returns the longest name of at least four letters that word contains, such as fair for RFairLock. It is
// meant for error messages.
func Nearest(word string, names []string) string {
	folded := []rune(fold(word))
	best, bestDistance := "", len(folded)/3+1
	for _, name := range names {
		if d := distance(folded, []rune(fold(name)), bestDistance); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	if best != "" || strings.Contains(word, "/") {
		return best
	}
	for _, name := range names {
		if part := fold(name); len(part) > max(3, len(fold(best))) && strings.Contains(string(folded), part) {
			best = name
		}
	}
	return best
}

// SameName reports whether two names differ only in letter case, underscores,
// hyphens and spaces, like orderId, order_id and OrderID.
func SameName(a, b string) bool { return fold(a) == fold(b) }

func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', ' ':
			return -1
		default:
			return unicode.ToLower(r)
		}
	}, strings.TrimSpace(s))
}

// distance returns the number of letters to insert, delete, replace, or swap with the
// neighbour to turn s into t. It returns at most limit.
func distance(s, t []rune, limit int) int {
	s, t = trimCommon(s, t)
	if max(len(s)-len(t), len(t)-len(s)) >= limit {
		return limit
	}
	rows := [3][]int{make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := range s {
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		if min(slices.Min(row), slices.Min(last)) >= limit { // the distance only grows from here
			return limit
		}
		before, last, row = last, row, before
	}
	return min(last[len(t)], limit)
}

// trimCommon returns two words without their common beginning and end.
func trimCommon(s, t []rune) (leftOfS, leftOfT []rune) {
	for len(s) > 0 && len(t) > 0 && s[0] == t[0] {
		s, t = s[1:], t[1:]
	}
	for len(s) > 0 && len(t) > 0 && s[len(s)-1] == t[len(t)-1] {
		s, t = s[:len(s)-1], t[:len(t)-1]
	}
	return s, t
}
