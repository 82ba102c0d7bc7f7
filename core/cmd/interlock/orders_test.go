package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/thorough"
)

// rulesOf are rules of one endpoint, one for each key, in that order.
func rulesOf(endpoint string, keys ...string) string {
	var text strings.Builder
	for i, key := range keys {
		fmt.Fprintf(&text, "- {func: %s, name: r%d, key: '%s:#{in.ID}'}\n", endpoint, i, key)
	}
	return text.String()
}

func numbered(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return keys
}

// The locks that only one endpoint takes are in nobody's way, however many they are.
func TestCheck_OrdersAmongManyLocksOfOneEndpoint(t *testing.T) {
	t.Parallel()
	own := numbered("own", thorough.Or(49_990, 10_000)) // a file has 50,000 rules at most
	text := "rules:\n" + rulesOf("a", append(append([]string{"first"}, own...), "last")...) + rulesOf("b", "last", "first")
	got := interlock(t, text, "check", "-")
	if n := strings.Count(got.stdout, "the other way round"); n != 1 || !strings.Contains(got.stdout, `taken after "last:#{in.ID}", and func a takes`) {
		t.Errorf("got %d warnings, want that of b:\n%s", n, got)
	}
}

// Of the locks that several endpoints take only so many are compared, and a note says it.
func TestCheck_OrdersOfManySharedLocks(t *testing.T) {
	t.Parallel()
	keys := numbered("k", 101)
	for shared, judged := range map[int]bool{100: true, 101: false} {
		text := "rules:\n" + rulesOf("a", keys[:shared]...) + rulesOf("b", keys[shared-1], keys[0]) + rulesOf("c", keys[1:shared-1]...)
		got := interlock(t, text, "check", "-")
		if warned := strings.Contains(got.stdout, "the other way round"); warned != judged {
			t.Errorf("%d shared locks: warned %t, want %t:\n%s", shared, warned, judged, got)
		}
		if noted := strings.Contains(got.stdout, `rule "r100" of func a: key: not judged: whether other endpoints take this lock`); noted == judged {
			t.Errorf("%d shared locks: noted %t, want %t:\n%s", shared, noted, !judged, got)
		}
	}
}
