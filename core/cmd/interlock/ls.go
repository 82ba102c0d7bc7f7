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

// ls is the command of that name.
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
		summary:  "the locks in a Redis: who holds them, for how long, who waits",
		text: `Lists the locks whose Redis keys begin with PREFIX, of all if there is none, whoever
has made them: Interlock or Redisson. Keys are looked at in portions, on every master
of a Cluster; Redis is never held up, and locks are shown as they are found, so that
the order is that of Redis, and one that changes meanwhile may be there twice. On a
terminal the progress is shown. Nothing is written, and the exit code is 0, if there are
none.

Redis does not tell every kind apart: reentrant may be a spin lock, or a fair lock for
which nobody waits. WAITERS are known of fair locks only; of others metrics tell. With
--counts plain semaphores and latches are listed, and with them every other number.
Long keys are cut, and those that have more than visible characters are in quotes;
--json has each lock on a line, with its key as it is.

` + urlText + `

Examples:
  interlock ls shop: --redis redis://localhost:6379
  interlock ls --redis redis://node:6379 --cluster --json | jq -r 'select(.lease_left_ms == null) | .key'`,
		flags: l.flags,
		run:   l.run,
	}
}

// urlText is what help says of the Redis.
const urlText = `The URL is one of go-redis: redis://, rediss:// or unix://, for a Sentinel with
master_name, for a Cluster with --cluster and, if one address is not enough, addr. It may
be in ` + redisVariable + `, or come from the standard input (--redis -), so that a
password is not in the list of processes.`

func (l *ls) flags(set *pflag.FlagSet) {
	l.target.flags(set)
	set.BoolVar(&l.counts, "counts", false, "also list numbers, which semaphores and latches are")
	set.BoolVar(&l.json, "json", false, "write an object of JSON for each lock, on a line")
}

func (l *ls) run(ctx context.Context, std streams, args []string) error {
	if len(args) > 1 {
		return usagef("%d arguments: write one prefix of keys, or none", len(args))
	}
	return l.locks(ctx, std.in, func(locks *core.Client) error {
		p, write := newProgress(std.err), l.writer(std.out)
		defer p.clear()
		for q := (core.LockQuery{Prefix: strings.Join(args, ""), Counts: l.counts}); ; {
			page, err := locks.Locks(ctx, q)
			if err != nil {
				return err
			}
			slices.SortFunc(page.Locks, func(a, b core.LockEntry) int { return cmp.Compare(a.Key, b.Key) })
			if len(page.Locks) > 0 {
				p.clear()
				if err := write(page.Locks); err != nil {
					return err
				}
			}
			p.add(page.Looked, page.Keys)
			if q.Cursor = page.Cursor; q.Cursor == "" {
				return nil
			}
		}
	})
}

// writer writes locks in the form that is wanted.
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

// progress tells a terminal how far a list of locks is. Elsewhere it says nothing.
type progress struct {
	to           io.Writer // nil: not a terminal
	looked, keys int64
	told         time.Time
}

// tellEvery is how often it tells.
const tellEvery = 200 * time.Millisecond

// newProgress tells a standard stream that is a terminal.
func newProgress(to io.Writer) *progress {
	if shown, is := to.(visible); is {
		to = shown.Writer // which gets more than visible characters from here
	}
	file, is := to.(interface{ Stat() (os.FileInfo, error) })
	if !is {
		return &progress{}
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{to: to, told: time.Now()}
}

// add counts the keys of a page.
func (p *progress) add(looked, keys int64) {
	p.looked, p.keys = p.looked+looked, keys
	if p.to != nil && time.Since(p.told) >= tellEvery {
		p.told = time.Now()
		fmt.Fprintf(p.to, "\r\x1b[K%d of %d keys", p.looked, p.keys)
	}
}

// clear makes room on the line, before the table goes on and in the end.
func (p *progress) clear() {
	if p.to != nil {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}
