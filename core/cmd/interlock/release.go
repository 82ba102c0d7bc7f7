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
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/bounded"
)

// release is the command of that name.
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
		text: `Shows the holders of the lock, up to 50, asks whether to go on, takes the lock from the
holders that it has shown, notifies the waiters, and says which holders have lost it. A
holder with another field, which came later, keeps the lock. Callers of one client that
pass a lock on in memory have one field: the caller that has the lock after the answer
loses it, which may be a later one than at the question. A holder of Interlock finds out
at its next renewal; one with a fixed lease, or of Redisson, when it releases. The work
that the lock guarded may still go on. Plain semaphores, latches and keys that are not
locks have no holders, and stay. Exit code 1 if no holder has lost the lock.

The answer is read from the standard input. --yes asks nothing. With --holder the others
keep the lock.

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
	set.StringArrayVar(&r.holders, "holder", nil, "take it only from this `field` (see who); may be given several times")
	set.BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	set.BoolVar(&r.json, "json", false, "write an object of JSON, with what was there before")
	r.pubSubFlag(set)
}

func (r *release) run(ctx context.Context, std streams, args []string) error {
	if slices.Contains(r.holders, "") {
		return usagef("--holder is empty: write the field of a holder, as interlock who shows it")
	}
	if r.url == "-" && !r.yes {
		return usagef("the URL and the answer both from the standard input: write --yes, or set %s", redisVariable)
	}
	return r.locks(ctx, std.in, func(locks *core.Client) error {
		return r.free(ctx, std, locks, args[0])
	})
}

// free takes the lock from the holders that it shows, or from the ones of --holder, if the operator agrees.
func (r *release) free(ctx context.Context, std streams, locks *core.Client, key string) error {
	seen, err := locks.Inspect(ctx, key)
	if err != nil {
		return err
	}
	fields, whom := r.holders, shown(strings.Join(r.holders, ","))
	if len(fields) == 0 {
		fields, whom = fieldsOf(&seen), "the holders shown"
	}
	if seen.HolderCount > 0 && !r.yes {
		if err := writeLock(std.err, seen, nil); err != nil {
			return err
		}
		if !agreed(std, whom) {
			return r.tell(std, false, seen, "nothing was done")
		}
	}
	before, err := locks.Evict(ctx, key, fields...)
	switch {
	case errors.Is(err, core.ErrNotHeld) && before.HolderCount == 0:
		return r.tell(std, false, before, "nobody holds it")
	case before.HolderCount > 0 && (errors.Is(err, core.ErrNotHeld) || errors.Is(err, core.ErrInvalid)):
		why := "nothing was done: it is held by " + heldBy(before)
		if len(r.holders) == 0 {
			why += " by now; where the holders change quickly, repeat it with --yes"
		}
		return r.tell(std, false, before, why)
	case err != nil:
		return err
	}
	return r.tell(std, true, before, "")
}

// fieldsOf are the fields of the holders of a lock.
func fieldsOf(e *core.LockEntry) (fields []string) {
	for _, h := range e.Holders {
		fields = append(fields, h.Field)
	}
	return fields
}

// agreed asks whether to go on.
func agreed(std streams, whom string) bool {
	fmt.Fprintf(std.err, "\nTake it from %s? The work that it guards may still go on. [y/N] ", whom)
	line, err := bufio.NewReader(io.LimitReader(std.in, bounded.Line)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(std.err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// tell says what was done, and who has lost the lock.
func (r *release) tell(std streams, freed bool, before core.LockEntry, why string) error {
	var err error
	if r.json {
		err = json.NewEncoder(std.out).Encode(struct {
			Freed  bool     `json:"freed"` // a holder has lost it; before has these holders
			Others int      `json:"others"`
			Before jsonLock `json:"before"`
		}{freed, before.HolderCount - len(before.Holders), jsonOf(before)})
	} else {
		_, err = io.WriteString(std.out, told(freed, before, why))
	}
	if err == nil && !freed {
		return errProblems
	}
	return err
}

// told is the text of tell.
func told(freed bool, before core.LockEntry, why string) string {
	if !freed {
		return fmt.Sprintf("%s: %s\n", shown(before.Key), why)
	}
	state := "freed"
	if others := before.HolderCount - len(before.Holders); others > 0 {
		state = "still held by " + counted(others, "other")
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", shown(before.Key), state)
	for _, h := range before.Holders {
		fmt.Fprintf(&text, "lost by %s, lease left %s\n", shown(h.Field), left(h.TTL))
	}
	return text.String()
}
