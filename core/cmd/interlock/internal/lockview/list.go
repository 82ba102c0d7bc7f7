package lockview

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core"
)

// List is a table of locks that is written part by part: no more than a part is in memory. Its columns
// only grow, from one part to the next.
type List struct {
	w      io.Writer
	widths []int
}

// NewList begins a table.
func NewList(w io.Writer) *List { return &List{w: w} }

// Write adds locks, in the order of their keys. The first part has the header.
func (l *List) Write(locks []core.LockEntry) error {
	locks = slices.SortedFunc(slices.Values(locks), func(a, b core.LockEntry) int { return cmp.Compare(a.Key, b.Key) })
	var rows [][]string
	if l.widths == nil {
		rows = append(rows, []string{"KEY", "KIND", "HELD BY", "LEASE LEFT", "WAITERS"})
		l.widths = make([]int, len(rows[0]))
	}
	for _, e := range locks {
		rows = append(rows, []string{Text(e.Key), string(e.Kind), HeldBy(e), Left(e.TTL), waiting(e)})
	}
	return l.write(rows)
}

func (l *List) write(rows [][]string) error {
	for _, row := range rows {
		for i, cell := range row {
			l.widths[i] = max(l.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%-*s  ", l.widths[i], cell)
		}
		fmt.Fprintln(&text, strings.TrimRight(line.String(), " "))
	}
	_, err := io.WriteString(l.w, text.String())
	return err
}

// HeldBy names who has a lock, in a few words.
func HeldBy(e core.LockEntry) string {
	switch {
	case e.Kind == core.KindPlainSemaphore:
		return fmt.Sprintf("- (count %d)", e.Available)
	case e.Kind == core.KindSemaphore:
		return fmt.Sprintf("%s, %d left", counted(e.HolderCount, "permit"), e.Available)
	case len(e.Holders) == 0:
		return "-"
	case e.HolderCount == 1:
		return Text(e.Holders[0].Field)
	default:
		return fmt.Sprintf("%s and %s", Text(e.Holders[0].Field), counted(e.HolderCount-1, "other"))
	}
}

// waiting says how many wait; nothing is known of kinds without a queue in Redis.
func waiting(e core.LockEntry) string {
	if e.Kind != core.KindFair {
		return "-"
	}
	return fmt.Sprint(e.WaiterCount)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
