package lockz

import (
	"cmp"
	"slices"
)

// waitRow is a row of the page: the waiters of one key, or one of them that is in a deadlock.
type waitRow struct {
	Waiter // the one that waits longest

	ID      string // of the row
	Callers int
	Rules   map[*rule]bool // of the callers
	Holding int            // how many of them hold something
}

// addKeys lists the waiters by key. However many wait for one key, they are one row.
func (v *view) addKeys(lines []line) {
	for i := range lines {
		l := &lines[i]
		var shared *waitRow
		for n, w := range l.waiters {
			row := shared
			if shared == nil || v.in[w] != 0 {
				row = &waitRow{Waiter: v.waiter(place{w, l, n + 1}), Rules: map[*rule]bool{}}
				row.ID = rowID("wait", row.KeyHash, l.client)
				if v.in[w] == 0 {
					shared = row
				} else {
					row.ID = rowID(row.ID, row.Since.UnixNano(), row.Deadlock)
				}
				if v.hasWaiter(&row.Waiter) {
					v.keys = append(v.keys, row)
				}
			}
			row.Callers++
			row.Rules[w.rule] = true
			row.Holding += min(len(w.carries), 1)
		}
	}
	slices.SortStableFunc(v.keys, func(a, b *waitRow) int {
		var sorted int
		switch v.sort {
		case "key":
			sorted = cmp.Compare(cmp.Or(a.Key, a.KeyHash), cmp.Or(b.Key, b.KeyHash))
		case "rule":
			sorted = cmp.Compare(a.Rule, b.Rule)
		case "waiting":
			sorted = cmp.Compare(b.Callers, a.Callers)
		}
		return cmp.Or(sorted, a.Since.Compare(b.Since), cmp.Compare(a.KeyHash, b.KeyHash))
	})
}
