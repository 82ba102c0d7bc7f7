package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/input"
)

// release is the command release.
type release struct {
	target

	holders []string
	yes     bool
	json    bool
}

func newRelease() *command {
	r := &release{}
	return &command{
		name:     "release",
		synopsis: "KEY [flags]",
		summary:  "take a lock from its holders, after a question",
		text: `Shows at most 50 holders of the lock, and asks whether to go on. Then it takes the lock from
the holders that it has shown, notifies the waiters, and lists the holders that have lost
the lock. A later holder with another field keeps the lock. Callers of one client that pass
a lock on in memory share one field. If they pass it on between the question and the answer,
the caller that then has the lock loses it. A holder of Interlock learns of the loss at its
next renewal. A holder with a fixed lease, or of Redisson, learns of it when it releases the
lock. The work under the lock may still go on. Plain semaphores, latches and keys that are
not locks have no holders, and stay. Exit code 1 if no holder has lost the lock.

The answer is read from the standard input. With --yes the command asks no question. With
--holder the other holders keep the lock.

` + urlText + `

Examples:
  interlock release shop:order:pay:42 --redis redis://localhost:6379
  interlock release shop:order:pay:42 --holder 71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:57 --yes`,
		args:  oneKey("Redis key"),
		flags: r.flags,
		run:   r.run,
	}
}

func (r *release) flags(set *pflag.FlagSet) {
	r.target.flags(set)
	set.StringArrayVar(&r.holders, "holder", nil, "take the lock only from this `field` (see who); may be given several times")
	set.BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	set.BoolVar(&r.json, "json", false, "write an object of JSON, with the lock before the command")
	r.pubSubFlag(set)
}

func (r *release) run(ctx context.Context, std streams, args []string) error {
	if slices.Contains(r.holders, "") {
		return usagef("--holder is empty: write the field of a holder, as interlock who shows it")
	}
	if r.url == "-" && !r.yes {
		return usagef("the URL and the answer cannot both come from the standard input: write --yes, or set %s", redisVariable)
	}
	return r.locks(ctx, std.in, func(locks *core.Client) error {
		return r.free(ctx, std, locks, args[0])
	})
}

// free shows the lock and asks the operator, except with --yes. If the operator agrees, free takes the lock from the holders
// shown, or from the holders that --holder names.
func (r *release) free(ctx context.Context, std streams, locks *core.Client, key string) error {
	seen, err := locks.Inspect(ctx, key)
	if err != nil {
		return err
	}
	fields, names := r.holders, safeText(strings.Join(r.holders, ","))
	if len(fields) == 0 {
		fields, names = fieldsOf(&seen), "the holders shown"
	}
	if seen.HolderCount > 0 && !r.yes {
		if err := writeLock(std.err, seen, nil); err != nil {
			return err
		}
		if !confirm(std, names) {
			return r.report(std, false, seen, "nothing was done")
		}
	}
	before, err := locks.Evict(ctx, key, fields...)
	switch {
	case errors.Is(err, core.ErrNotHeld) && before.HolderCount == 0:
		return r.report(std, false, before, "the lock has no holder")
	case before.HolderCount > 0 && (errors.Is(err, core.ErrNotHeld) || errors.Is(err, core.ErrInvalid)):
		why := "nothing was done: the lock is held by " + heldBy(before)
		if len(r.holders) == 0 {
			why += " now; if the holders change quickly, repeat the command with --yes"
		}
		return r.report(std, false, before, why)
	case err != nil:
		return err
	}
	return r.report(std, true, before, "")
}

// fieldsOf returns the fields of the holders of a lock.
func fieldsOf(e *core.LockEntry) (fields []string) {
	for _, h := range e.Holders {
		fields = append(fields, h.Field)
	}
	return fields
}

// confirm asks the operator whether to go on.
func confirm(std streams, names string) bool {
	fmt.Fprintf(std.err, "\nTake the lock from %s? The work under it may still go on. [y/N] ", names)
	line, err := bufio.NewReader(io.LimitReader(std.in, input.Line)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(std.err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// report writes the result and the holders that lost the lock.
func (r *release) report(std streams, freed bool, before core.LockEntry, why string) error {
	var err error
	if r.json {
		err = json.NewEncoder(std.out).Encode(struct {
			Freed  bool     `json:"freed"` // a holder lost the lock; before contains these holders
			Others int      `json:"others"`
			Before jsonLock `json:"before"`
		}{freed, before.HolderCount - len(before.Holders), jsonOf(before)})
	} else {
		_, err = io.WriteString(std.out, resultText(freed, before, why))
	}
	if err == nil && !freed {
		return errProblems
	}
	return err
}

// resultText returns the result as text.
func resultText(freed bool, before core.LockEntry, why string) string {
	if !freed {
		return fmt.Sprintf("%s: %s\n", safeText(before.Key), why)
	}
	state := "freed"
	if others := before.HolderCount - len(before.Holders); others > 0 {
		state = "still held by " + countOf(others, "other")
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", safeText(before.Key), state)
	for _, h := range before.Holders {
		fmt.Fprintf(&text, "lost by %s, lease left %s\n", safeText(h.Field), formatLease(h.TTL))
	}
	return text.String()
}
