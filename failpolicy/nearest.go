package failpolicy

import (
	"slices"
	"strings"
	"unicode"
)

// Nearest returns the name that was probably meant by word, or "" when none is
// near: letter case, underscores and hyphens are ignored, and about every third
// letter may be wrong; or else the longest name of at least four letters that is in the word, as
// fair is in RFairLock. For error messages.
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

// SameName reports whether two names differ in nothing but letter case, underscores,
// hyphens and spaces, as orderId, order_id and OrderID do.
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

// distance is the number of letters to insert, delete, replace, or swap with the
// neighbour to turn s into t, or limit if it is not less.
func distance(s, t []rune, limit int) int {
	s, t = differing(s, t)
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
		if min(slices.Min(row), slices.Min(last)) >= limit { // it only grows from here
			return limit
		}
		before, last, row = last, row, before
	}
	return min(last[len(t)], limit)
}

// differing is what is left of two words without the beginning and the end that they have
// in common.
func differing(s, t []rune) (leftOfS, leftOfT []rune) {
	for len(s) > 0 && len(t) > 0 && s[0] == t[0] {
		s, t = s[1:], t[1:]
	}
	for len(s) > 0 && len(t) > 0 && s[len(s)-1] == t[len(t)-1] {
		s, t = s[:len(s)-1], t[:len(t)-1]
	}
	return s, t
}
