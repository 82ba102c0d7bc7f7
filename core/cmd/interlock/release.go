package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/lockview"
)

// release is the command of that name.
type release struct {
	target

	holder string
	pubSub string
	yes    bool
	json   bool
}

func newRelease() *command {
	r := &release{}
	return &command{
		name:     "release",
		synopsis: "KEY [flags]",
		summary:  "free a lock whoever holds it, after a question",
		text: `Shows who holds the lock, asks whether to go on, frees it as RLock.forceUnlock of Redisson
does, notifies those who wait, and says who has lost it. It is taken from those who were
shown only: if somebody else has got it meanwhile, nothing is done. A holder of Interlock
finds out at its next renewal, one with a fixed lease, or of Redisson, when it releases;
the work that the lock guarded may still go on. Of a read/write lock all readers lose it,
or the writer with the readers inside; of a semaphore with leases all permits come back.
Plain semaphores and latches have no holders, and stay. Exit code 1 if nothing was freed.

The answer is read from the standard input. --yes asks nothing; with --holder it frees the
lock only of the one who was seen before.

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
	set.StringVar(&r.holder, "holder", "", "free it only if this `field` holds it (see who)")
	set.BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	set.BoolVar(&r.json, "json", false, "write an object of JSON, with what was there before")
	pubSubFlag(set, &r.pubSub)
}

func (r *release) run(ctx context.Context, std streams, args []string) error {
	mode, err := pubSubOf(r.pubSub)
	if err != nil {
		return err
	}
	if r.url == "-" && !r.yes {
		return usagef("the URL and the answer both from the standard input: write --yes, or set %s", redisVariable)
	}
	return r.locks(ctx, std.in, func(locks *core.Client) error {
		return r.free(ctx, std, locks, args[0])
	}, core.WithPubSub(mode))
}

// free frees the lock of those who hold it now, if that is wanted.
func (r *release) free(ctx context.Context, std streams, locks *core.Client, key string) error {
	seen, err := locks.Inspect(ctx, key)
	if err != nil {
		return err
	}
	fields := fieldsOf(&seen)
	if r.holder != "" {
		fields = []string{r.holder}
	}
	if seen.HolderCount > 0 && !r.yes {
		if err := lockview.Write(std.err, seen); err != nil {
			return err
		}
		if !agreed(std) {
			return r.tell(std, false, seen, "nothing was done")
		}
	}
	before, err := locks.Evict(ctx, key, fields...)
	switch {
	case errors.Is(err, core.ErrNotHeld) && before.HolderCount == 0:
		return r.tell(std, false, before, "nobody holds it")
	case errors.Is(err, core.ErrNotHeld):
		return r.tell(std, false, before, "nothing was done: it is held by "+lockview.HeldBy(before))
	case err != nil:
		return err
	}
	return r.tell(std, true, before, "")
}

// fieldsOf are the fields of those who hold a lock. Of a free one it is a field that nobody has: nobody loses
// a lock who was not shown.
func fieldsOf(e *core.LockEntry) (fields []string) {
	if len(e.Holders) == 0 {
		return []string{""}
	}
	for _, h := range e.Holders {
		fields = append(fields, h.Field)
	}
	return fields
}

// agreed asks whether to go on.
func agreed(std streams) bool {
	fmt.Fprint(std.err, "\nFree it? The work that it guards may still go on. [y/N] ")
	line, err := bufio.NewReader(std.in).ReadString('\n')
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
			Freed  bool          `json:"freed"`
			Before lockview.Lock `json:"before"`
		}{freed, lockview.JSON(before)})
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
		return fmt.Sprintf("%s: %s\n", lockview.Text(before.Key), why)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: freed\n", lockview.Text(before.Key))
	for _, h := range before.Holders {
		fmt.Fprintf(&text, "lost by %s, lease left %s\n", lockview.Text(h.Field), lockview.Left(h.TTL))
	}
	if more := before.HolderCount - len(before.Holders); more > 0 {
		fmt.Fprintf(&text, "and by %d others\n", more)
	}
	return text.String()
}
