package lockview

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/interlock-go/interlock/core"
)

// Write shows all that is known of a lock, with the addresses of clients by their ids unless that is nil.
func Write(w io.Writer, e core.LockEntry, addresses map[string][]string) error {
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
	return writePeople(w, e, addresses)
}

// writePeople shows who has a lock and who waits.
func writePeople(w io.Writer, e core.LockEntry, addresses map[string][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(e.Holders) > 0 {
		header := "HOLDER\tCLIENT ID\tHOLDS\tLEASE LEFT"
		if addresses != nil {
			header += "\tADDRESS"
		}
		fmt.Fprintf(table, "\n%s\n%s\n", some(len(e.Holders), e.HolderCount, "holder"), header)
	}
	for _, h := range e.Holders {
		client := "-"
		if id := h.ClientID(); id != "" {
			client = Text(id)
		}
		row := fmt.Sprintf("%s\t%s\t%d\t%s", Text(h.Field), client, h.Count, Left(h.TTL))
		if addresses != nil {
			row += "\t" + cmp.Or(strings.Join(addresses[h.ClientID()], ", "), "-")
		}
		fmt.Fprintln(table, row)
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
