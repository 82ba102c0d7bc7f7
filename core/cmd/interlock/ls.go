package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
)

// ls is the command ls.
type ls struct {
	target

	json   bool
	counts bool
}

func newLs() *command {
	l := &ls{}
	return &command{
		name:     "ls",
		synopsis: "[PREFIX] [flags]",
		summary:  "list the locks in a Redis: holders, leases, waiters of fair locks",
		text: `Lists the locks of Interlock and of Redisson whose Redis keys begin with PREFIX. Without
PREFIX it lists all locks. It reads the keys in portions, on every master of a Cluster, and
never blocks Redis. It shows locks in the order in which Redis returns them, and a lock that
changes during the command may appear twice. On a terminal it shows its progress. If there
are no locks, it writes a line to stderr (with --json nothing), and the exit code is 0.

Redis cannot distinguish every kind: reentrant may be a spin lock, or a fair lock without
waiters. WAITERS are known for fair locks only; metrics count the waiters of other kinds.
With --counts it also lists every number, which may be a plain semaphore or a latch.
Long keys are cut, and keys with invisible characters are in quotes. --json writes each lock
on a line, with its unchanged key.

` + urlText + `

Examples:
  interlock ls shop: --redis redis://localhost:6379
  interlock ls --redis redis://node:6379 --cluster --json | jq -r 'select(.lease_left_ms == null) | .key'`,
		flags: l.flags,
		run:   l.run,
	}
}

func (l *ls) flags(set *pflag.FlagSet) {
	l.target.flags(set)
	set.BoolVar(&l.counts, "counts", false, "also list numbers, such as semaphores and latches")
	set.BoolVar(&l.json, "json", false, "write an object of JSON for each lock, on a line")
}

func (l *ls) run(ctx context.Context, std streams, args []string) error {
	if len(args) > 1 {
		return usagef("%d arguments: write one prefix of keys, or none", len(args))
	}
	return l.locks(ctx, std.in, func(locks *core.Client) error {
		p, write, found := newProgress(std.err), l.writer(std.out), false
		defer p.clear()
		for q := (core.LockQuery{Prefix: strings.Join(args, ""), Counts: l.counts}); ; {
			page, err := locks.Locks(ctx, q)
			if err != nil {
				return err
			}
			slices.SortFunc(page.Locks, func(a, b core.LockEntry) int { return cmp.Compare(a.Key, b.Key) })
			if len(page.Locks) > 0 {
				found = true
				p.clear()
				if err := write(page.Locks); err != nil {
					return err
				}
			}
			p.add(page.Looked, page.Keys)
			if q.Cursor = page.Cursor; q.Cursor != "" {
				continue
			}
			if !found && !l.json {
				p.clear()
				fmt.Fprintln(std.err, noLocks(q.Prefix))
			}
			return nil
		}
	})
}

// noLocks returns the message for an empty list.
func noLocks(prefix string) string {
	if prefix == "" {
		return "interlock ls: no locks found"
	}
	return fmt.Sprintf("interlock ls: no locks found whose keys begin with %q", prefix)
}

// writer returns a function that writes locks in the format that the flags select.
func (l *ls) writer(w io.Writer) func([]core.LockEntry) error {
	if !l.json {
		return newLockTable(w).write
	}
	enc := json.NewEncoder(w)
	return func(locks []core.LockEntry) error {
		for _, e := range locks {
			if err := enc.Encode(jsonOf(e)); err != nil {
				return err
			}
		}
		return nil
	}
}

// progress shows the progress of a list on a terminal. On other outputs it writes nothing.
type progress struct {
	to           io.Writer // nil: not a terminal
	looked, keys int64
	shown        time.Time
}

// progressInterval is the time between two updates of the progress.
const progressInterval = 200 * time.Millisecond

// newProgress returns a progress for a standard stream.
func newProgress(to io.Writer) *progress {
	if shown, is := to.(visibleWriter); is {
		to = shown.Writer // without escaping, because the progress moves the cursor
	}
	file, is := to.(interface{ Stat() (os.FileInfo, error) })
	if !is {
		return &progress{}
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{to: to, shown: time.Now()}
}

// add counts the keys of a page.
func (p *progress) add(looked, keys int64) {
	p.looked, p.keys = p.looked+looked, keys
	if p.to != nil && time.Since(p.shown) >= progressInterval {
		p.shown = time.Now()
		fmt.Fprintf(p.to, "\r\x1b[K%d of %d keys", p.looked, p.keys)
	}
}

// clear clears the line before the table continues and at the end.
func (p *progress) clear() {
	if p.to != nil {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}
