package failpolicy

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// edits counts the edits that the comment of distance describes.
func edits(s, t []rune) int {
	switch {
	case len(s) == 0 || len(t) == 0:
		return len(s) + len(t)
	case s[0] == t[0]:
		return edits(s[1:], t[1:])
	}
	least := 1 + min(edits(s[1:], t), edits(s, t[1:]), edits(s[1:], t[1:]))
	if len(s) > 1 && len(t) > 1 && s[0] == t[1] && s[1] == t[0] {
		least = min(least, 1+edits(s[2:], t[2:]))
	}
	return least
}

func TestDistance(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	word := func() []rune {
		w := make([]rune, random.IntN(7))
		for i := range w {
			w[i] = []rune("abcé")[random.IntN(4)]
		}
		return w
	}
	for range 20000 {
		a, b, limit := word(), word(), 1+random.IntN(8)
		if got, want := distance(a, b, limit), min(edits(a, b), limit); got != want {
			t.Fatalf("%q, %q up to %d: got %d, want %d", string(a), string(b), limit, got, want)
		}
	}
}

// BenchmarkNearest searches the names of a large program for the nearest to a wrong name.
func BenchmarkNearest(b *testing.B) {
	names := make([]string, 10000)
	for i := range names {
		names[i] = fmt.Sprintf("POST /service-%d/orders/topic-%d/paid", i%100, i)
	}
	for i := 0; b.Loop(); i++ {
		Nearest(names[i%len(names)]+"x", names)
	}
}
