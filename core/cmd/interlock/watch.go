package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/lockview"
)

// watch is the command of that name.
type watch struct {
	target

	interval time.Duration
	json     bool
}

// Bounds of what is watched.
const (
	leastInterval = 50 * time.Millisecond
	mostWatched   = 10_000
)

func newWatch() *command {
	w := &watch{}
	return &command{
		name:     "watch",
		synopsis: "KEY | PREFIX* [flags]",
		summary:  "what happens to a lock, or to all locks with a prefix",
		text: `Looks at a lock, or at all locks whose keys begin with PREFIX, again and again, and prints
what has changed: held, freed, passed from one holder to another, changed (of those that
several hold), and how many wait for a fair lock. Callers of one client that pass a lock
on in memory are one holder. What begins and ends between two looks is not seen. It ends
with Ctrl-C. Redis that is away for a while is reported once, and waited for. Of a prefix
each look goes through all keys of the Redis: take a longer interval for a large one. At
most 10000 locks are watched.

` + urlText + `

Examples:
  interlock watch shop:order:pay:42 --redis redis://localhost:6379
  interlock watch 'shop:*' --interval 5s --json`,
		args:  oneKey("Redis key"),
		flags: w.flags,
		run:   w.run,
	}
}

func (w *watch) flags(set *pflag.FlagSet) {
	w.target.flags(set)
	set.DurationVar(&w.interval, "interval", time.Second, "`time` from one look to the next")
	set.BoolVar(&w.json, "json", false, "write an object of JSON for each change, on a line")
}

func (w *watch) run(ctx context.Context, std streams, args []string) error {
	if w.interval < leastInterval {
		return usagef("--interval %s: want %s or more", w.interval, leastInterval)
	}
	look := lookAt(args[0])
	if prefix, is := strings.CutSuffix(args[0], "*"); is {
		look = lookAtAll(prefix)
	}
	return w.locks(ctx, std.in, func(locks *core.Client) error {
		return w.follow(ctx, std, func() (lockview.Seen, error) { return look(ctx, locks) })
	})
}

// looking finds out what there is.
type looking func(ctx context.Context, locks *core.Client) (lockview.Seen, error)

// lookAt looks at one lock.
func lookAt(key string) looking {
	return func(ctx context.Context, locks *core.Client) (lockview.Seen, error) {
		e, err := locks.Inspect(ctx, key)
		seen := lockview.Seen{}
		seen.Add(e)
		return seen, err
	}
}

// lookAtAll looks at all locks with a prefix.
func lookAtAll(prefix string) looking {
	return func(ctx context.Context, locks *core.Client) (lockview.Seen, error) {
		seen := lockview.Seen{}
		return seen, eachPage(ctx, locks, core.LockQuery{Prefix: prefix}, &progress{}, func(page []core.LockEntry) error {
			for _, e := range page {
				seen.Add(e)
			}
			if len(seen) > mostWatched {
				return usagef("more than %d locks: write a longer prefix", mostWatched)
			}
			return nil
		})
	}
}

// follow tells what changes until ctx ends.
func (w *watch) follow(ctx context.Context, std streams, look func() (lockview.Seen, error)) error {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	before, away := lockview.Seen{}, false
	for {
		now, err := look()
		err = w.explain(err)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if err := w.write(std.out, now.Changes(before)); err != nil {
				return err
			}
			before, away = now, false
		case !errors.Is(err, core.ErrUnavailable):
			return err
		case !away:
			away = true
			fmt.Fprintln(std.err, "interlock watch:", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// write tells changes, with the time at which they were seen.
func (w *watch) write(to io.Writer, changes []lockview.Change) error {
	for _, c := range changes {
		if err := w.writeOne(to, time.Now(), c); err != nil {
			return err
		}
	}
	return nil
}

func (w *watch) writeOne(to io.Writer, at time.Time, c lockview.Change) error {
	if w.json {
		return json.NewEncoder(to).Encode(struct {
			Time time.Time `json:"time"`
			lockview.Change
		}{at, c})
	}
	_, err := fmt.Fprintf(to, "%s  %-7s  %s: %s\n", at.Format("15:04:05.000"), c.Event, lockview.Text(c.Lock.Key), c.Text)
	return err
}
