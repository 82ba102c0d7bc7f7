package lockview

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/interlock-go/interlock/core"
)

// Write shows all that is known of a lock.
func Write(w io.Writer, e core.LockEntry) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "key\t%s\n", Text(e.Key))
	fmt.Fprintf(table, "kind\t%s\n", kindText(e))
	if e.HolderCount > 0 {
		fmt.Fprintf(table, "lease left\t%s\n", Left(e.TTL))
	}
	if e.Token > 0 {
		fmt.Fprintf(table, "last token\t%d\n", e.Token)
	}
	if e.Kind == core.KindSemaphore || e.Kind == core.KindPlainSemaphore {
		fmt.Fprintf(table, "count\t%d\n", e.Available)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return writePeople(w, e)
}

// writePeople shows who has a lock and who waits.
func writePeople(w io.Writer, e core.LockEntry) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(e.Holders) > 0 {
		fmt.Fprintf(table, "\n%s\nHOLDER\tCLIENT ID\tHOLDS\tLEASE LEFT\n", some(len(e.Holders), e.HolderCount, "holder"))
	}
	for _, h := range e.Holders {
		client := "-"
		if id := h.ClientID(); id != "" {
			client = Text(id)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", Text(h.Field), client, h.Count, Left(h.TTL))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(e.Waiters) > 0 {
		fmt.Fprintf(w, "\n%s, the next one first\n", some(len(e.Waiters), e.WaiterCount, "waiter"))
	}
	for _, waiter := range e.Waiters {
		if _, err := fmt.Fprintln(w, Text(waiter)); err != nil {
			return err
		}
	}
	return nil
}

// some says how many of how many are shown.
func some(shown, all int, noun string) string {
	if shown < all {
		return fmt.Sprintf("%s, of whom %d are shown", counted(all, noun), shown)
	}
	return counted(all, noun)
}

// kindText names a kind as far as Redis tells it.
func kindText(e core.LockEntry) string {
	switch e.Kind {
	case "":
		if !e.Exists {
			return "none: nobody holds it (a key is the prefix of the lock client and the name)"
		}
		return "none: the key is no lock"
	case core.KindReentrant:
		return "reentrant (or spin, or fair without waiters)"
	case core.KindPlainSemaphore:
		return "a number: a semaphore without permits that are out, a latch, or no lock at all"
	default:
		return string(e.Kind)
	}
}
