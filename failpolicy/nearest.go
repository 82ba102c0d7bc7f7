package failpolicy

import "strings"

// Nearest returns the name that was probably meant by word, or "" when none is
// near: letter case, underscores and hyphens are ignored, and about every third
// letter may be wrong. For error messages.
func Nearest(word string, names []string) string {
	folded := fold(word)
	best, bestDistance := "", len([]rune(folded))/3+1
	for _, name := range names {
		if d := distance(folded, fold(name)); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

func fold(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(s)
}

// distance is the number of letters to insert, delete, replace, or swap with the
// neighbour to turn a into b.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
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
		before, last, row = last, row, before
	}
	return last[len(t)]
}
