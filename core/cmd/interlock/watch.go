package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
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
		return w.follow(ctx, std, func() (seenLocks, error) { return look(ctx, locks) })
	})
}

// looking finds out what there is.
type looking func(ctx context.Context, locks *core.Client) (seenLocks, error)

// lookAt looks at one lock.
func lookAt(key string) looking {
	return func(ctx context.Context, locks *core.Client) (seenLocks, error) {
		e, err := locks.Inspect(ctx, key)
		seen := seenLocks{}
		seen.add(e)
		return seen, err
	}
}

// lookAtAll looks at all locks with a prefix.
func lookAtAll(prefix string) looking {
	return func(ctx context.Context, locks *core.Client) (seenLocks, error) {
		seen := seenLocks{}
		return seen, eachPage(ctx, locks, core.LockQuery{Prefix: prefix}, &progress{}, func(page []core.LockEntry) error {
			for _, e := range page {
				seen.add(e)
			}
			if len(seen) > mostWatched {
				return usagef("more than %d locks: write a longer prefix", mostWatched)
			}
			return nil
		})
	}
}

// follow tells what changes until ctx ends.
func (w *watch) follow(ctx context.Context, std streams, look func() (seenLocks, error)) error {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	before, away := seenLocks{}, false
	for {
		now, err := look()
		err = w.explain(err)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if err := w.write(std.out, now.changes(before)); err != nil {
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
func (w *watch) write(to io.Writer, changes []change) error {
	for _, c := range changes {
		if err := w.writeOne(to, time.Now(), c); err != nil {
			return err
		}
	}
	return nil
}

func (w *watch) writeOne(to io.Writer, at time.Time, c change) error {
	if w.json {
		return json.NewEncoder(to).Encode(struct {
			Time time.Time `json:"time"`
			change
		}{at, c})
	}
	_, err := fmt.Fprintf(to, "%s  %-7s  %s: %s\n", at.Format("15:04:05.000"), c.Event, shown(c.Lock.Key), c.Text)
	return err
}

// change is what has become of a lock from one look to the next.
type change struct {
	Event string   `json:"event"` // held, freed, passed, changed or waiters
	Text  string   `json:"-"`     // for people
	Lost  []string `json:"before,omitempty"`
	Lock  jsonLock `json:"lock"`
}

// seenLocks is what was seen of locks at one time, by their keys.
type seenLocks map[string]core.LockEntry

// add notes a lock that was looked at. Free ones without waiters are forgotten.
func (s seenLocks) add(e core.LockEntry) {
	if e.HolderCount > 0 || e.WaiterCount > 0 || e.Kind == core.KindPlainSemaphore {
		s[e.Key] = e
	}
}

// changes are what has changed since before, by key.
func (s seenLocks) changes(before seenLocks) []change {
	keys := maps.Clone(s)
	maps.Copy(keys, before)
	var list []change
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		old, now := before[key], s[key]
		now.Key = key
		if event, text := changed(&old, &now); event != "" {
			list = append(list, change{Event: event, Text: text, Lost: sortedFields(&old), Lock: jsonOf(now)})
		}
	}
	return list
}

// changed names what has happened between two looks; nothing if the lock is as it was.
func changed(old, now *core.LockEntry) (event, text string) {
	switch before, after := sortedFields(old), sortedFields(now); {
	case old.HolderCount == 0 && now.HolderCount > 0:
		return "held", fmt.Sprintf("held by %s, lease left %s", heldBy(*now), left(now.TTL))
	case old.HolderCount > 0 && now.HolderCount == 0:
		return "freed", "freed, was held by " + heldBy(*old)
	case !slices.ContainsFunc(after, func(f string) bool { return slices.Contains(before, f) }) && len(after) > 0:
		return "passed", fmt.Sprintf("passed from %s to %s, lease left %s", heldBy(*old), heldBy(*now), left(now.TTL))
	case old.HolderCount != now.HolderCount || strings.Join(before, "\n") != strings.Join(after, "\n") || old.Available != now.Available:
		return "changed", "held by " + heldBy(*now)
	case old.WaiterCount != now.WaiterCount:
		return "waiters", fmt.Sprintf("%s, before %d", counted(now.WaiterCount, "waiter"), old.WaiterCount)
	default:
		return "", ""
	}
}

// sortedFields are the fields of the holders, in order.
func sortedFields(e *core.LockEntry) []string { return slices.Sorted(slices.Values(fieldsOf(e))) }
