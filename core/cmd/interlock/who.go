package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
)

// who is the command of that name.
type who struct {
	target

	json bool
}

func newWho() *command {
	w := &who{}
	return &command{
		name:     "who",
		synopsis: "KEY [flags]",
		summary:  "all that Redis knows of a lock: holders, leases, waiters",
		text: `Shows all that Redis knows of one lock, by its key: that is the prefix of the lock client
and the name. Callers of one client that pass a lock on in memory are one holder, with one
field; the live page of the process knows since when each has it. The client id leads to
the process: the metric distributed_lock_client_info has it; of a Java service
RedissonClient.getId does. The address of the process is shown, as Redis sees it, if its
lock client has core.WithNamedConnections. Up to 50 holders and waiters are shown. Exit
code 1 if it has no holder.

` + urlText + `

Examples:
  interlock who shop:order:pay:42 --redis redis://localhost:6379
  interlock who shop:order:pay:42 --json`,
		args:  oneKey("Redis key"),
		flags: w.flags,
		run:   w.run,
	}
}

func (w *who) flags(set *pflag.FlagSet) {
	w.target.flags(set)
	set.BoolVar(&w.json, "json", false, "write an object of JSON")
}

func (w *who) run(ctx context.Context, std streams, args []string) error {
	return w.locks(ctx, std.in, func(locks *core.Client) error {
		e, err := locks.Inspect(ctx, args[0])
		if err != nil {
			return err
		}
		found := map[string][]string{}
		if len(e.Holders) > 0 && e.Holders[0].ClientID() != "" {
			if found, err = w.addresses(ctx); err != nil {
				fmt.Fprintf(std.err, "interlock who: not all addresses of holders are known, for which the user needs +client|list: %v\n", err)
			}
		}
		if w.json {
			lock := jsonOf(e)
			for i, h := range lock.Holders {
				lock.Holders[i].Addresses = found[h.ClientID]
			}
			err = json.NewEncoder(std.out).Encode(lock)
		} else {
			err = writeLock(std.out, e, found)
		}
		if err == nil && e.HolderCount == 0 {
			return errProblems
		}
		return err
	})
}
