package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core"
)

// maxShown is the largest number of characters of a key or a field that tables show.
const maxShown = 100

// safeText returns a text from Redis in a form that is safe for a terminal. It quotes the text if it has invisible characters
// or looks quoted, and it shortens a long text. The result cannot move the cursor or change colours.
func safeText(s string) string {
	if strings.ContainsFunc(s, isHidden) || !utf8.ValidString(s) || s == "" || s == "-" {
		s = strconv.Quote(s)
	}
	runes := 0
	for i := range s {
		if runes++; runes > maxShown {
			return fmt.Sprintf("%s… (%d bytes)", s[:i], len(s))
		}
	}
	return s
}

// isHidden reports whether a reader cannot see a character or a table cannot contain it.
func isHidden(r rune) bool {
	return r == '"' || r == '\\' || unicode.IsSpace(r) || !unicode.IsPrint(r) || unicode.Is(unicode.M, r)
}

// formatLease formats the rest of a lease for people. It rounds up to a tenth of a second below 10 s, to a second
// below an hour, and otherwise to a minute.
func formatLease(d time.Duration) string {
	step := time.Second
	switch {
	case d < 0:
		return "no end"
	case d == 0:
		return "-"
	case d < 10*time.Second:
		step = time.Second / 10
	case d >= time.Hour:
		step = time.Minute
	}
	d = (d + step - 1).Truncate(step)
	if step == time.Minute {
		return strings.TrimSuffix(d.String(), "0s")
	}
	return d.String()
}

// lockTable is a table of locks that is written in parts. Only one part is in memory. The columns
// never become narrower from one part to the next.
type lockTable struct {
	w      io.Writer
	widths []int
}

func newLockTable(w io.Writer) *lockTable { return &lockTable{w: w} }

// write writes a part of the table. It writes the header with the first part.
func (l *lockTable) write(locks []core.LockEntry) error {
	var rows [][]string
	if l.widths == nil {
		rows = append(rows, []string{"KEY", "KIND", "HELD BY", "LEASE LEFT", "WAITERS"})
		l.widths = make([]int, len(rows[0]))
	}
	for _, e := range locks {
		rows = append(rows, []string{safeText(e.Key), string(e.Kind), heldBy(e), formatLease(e.TTL), waiterCount(e)})
	}
	return l.writeRows(rows)
}

func (l *lockTable) writeRows(rows [][]string) error {
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

// heldBy names the holders of a lock in a few words.
func heldBy(e core.LockEntry) string {
	switch {
	case e.Kind == core.KindPlainSemaphore:
		return fmt.Sprintf("- (count %d)", e.Available)
	case e.Kind == core.KindSemaphore:
		return fmt.Sprintf("%s, %d left", countOf(e.HolderCount, "permit"), e.Available)
	case len(e.Holders) == 0:
		return "-"
	case e.HolderCount == 1:
		return safeText(e.Holders[0].Field)
	default:
		return fmt.Sprintf("%s and %s", safeText(e.Holders[0].Field), countOf(e.HolderCount-1, "other"))
	}
}

// waiterCount returns the number of waiters, or "-" for a kind without a queue in Redis.
func waiterCount(e core.LockEntry) string {
	if e.Kind != core.KindFair {
		return "-"
	}
	return fmt.Sprint(e.WaiterCount)
}

// writeLock shows a lock. addresses maps the ids of clients to their addresses; if it is nil, no addresses
// are shown.
func writeLock(w io.Writer, e core.LockEntry, addresses map[string][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "key\t%s\n", safeText(e.Key))
	fmt.Fprintf(table, "kind\t%s\n", kindText(e))
	if e.HolderCount > 0 {
		fmt.Fprintf(table, "lease left\t%s\n", formatLease(e.TTL))
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
	return writeHolders(w, e, addresses)
}

// writeHolders shows the holders and the waiters of a lock.
func writeHolders(w io.Writer, e core.LockEntry, addresses map[string][]string) error {
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
			client = safeText(id)
		}
		row := fmt.Sprintf("%s\t%s\t%d\t%s", safeText(h.Field), client, h.Count, formatLease(h.TTL))
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
		if _, err := fmt.Fprintln(w, safeText(waiter)); err != nil {
			return err
		}
	}
	return nil
}

// some returns a number with a noun. If fewer are shown, it adds their number.
func some(shown, all int, noun string) string {
	if shown < all {
		return fmt.Sprintf("%s, %d of them shown", countOf(all, noun), shown)
	}
	return countOf(all, noun)
}

// kindText describes the kind of a lock, as far as the data in Redis shows it.
func kindText(e core.LockEntry) string {
	switch e.Kind {
	case "":
		if !e.Exists {
			return "none: the lock has no holder (a key is the prefix of the lock client and the name)"
		}
		return "none: the key is not a lock"
	case core.KindReentrant:
		return "reentrant (or spin, or fair without waiters)"
	case core.KindPlainSemaphore:
		return "a number: a semaphore without holders, a latch, or not a lock"
	default:
		return string(e.Kind)
	}
}

// jsonLock is a lock as JSON. Times are in milliseconds. A lease that does not expire is null.
type jsonLock struct {
	Key         string       `json:"key"`
	Bytes       []byte       `json:"key_base64,omitempty"` // the key if it is not UTF-8, which JSON cannot contain
	Kind        string       `json:"kind"`                 // empty: not a lock, or no such key
	LeftMS      *int64       `json:"lease_left_ms"`
	Holders     []jsonHolder `json:"holders"`
	HolderCount int          `json:"holder_count"`
	Waiters     []string     `json:"waiters"`
	WaiterCount int          `json:"waiter_count"`
	Token       int64        `json:"token,omitempty"`
	Available   *int64       `json:"available,omitempty"` // the count of a semaphore, plain or with permits
}

// jsonHolder is a holder of a lock as JSON.
type jsonHolder struct {
	Field    string `json:"field"`
	ClientID string `json:"client_id,omitempty"`
	Count    int64  `json:"count"`
	LeftMS   *int64 `json:"lease_left_ms"`

	Addresses []string `json:"addresses,omitempty"` // the addresses of the client, if they are known
}

// jsonOf converts an entry to JSON.
func jsonOf(e core.LockEntry) jsonLock {
	l := jsonLock{
		Key: e.Key, Kind: string(e.Kind), LeftMS: ms(e.TTL.Milliseconds()), Holders: []jsonHolder{}, HolderCount: e.HolderCount,
		Waiters: append([]string{}, e.Waiters...), WaiterCount: e.WaiterCount, Token: e.Token,
	}
	if !utf8.ValidString(e.Key) {
		l.Bytes = []byte(e.Key)
	}
	for _, h := range e.Holders {
		l.Holders = append(l.Holders, jsonHolder{Field: h.Field, ClientID: h.ClientID(), Count: h.Count, LeftMS: ms(h.TTL.Milliseconds())})
	}
	if e.Kind == core.KindSemaphore || e.Kind == core.KindPlainSemaphore {
		l.Available = &e.Available
	}
	return l
}

func ms(left int64) *int64 {
	if left < 0 {
		return nil
	}
	return &left
}
