package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
)

// who is the command who.
type who struct {
	target

	json bool
}

func newWho() *command {
	w := &who{}
	return &command{
		name:     "who",
		synopsis: "KEY [flags]",
		summary:  "show one lock in a Redis: holders, leases, waiters",
		text: `Shows everything that Redis knows about one lock, by its key: the prefix of the lock client
and the name. Callers of one client that pass a lock on in memory are one holder, with one
field. The live page of the process shows since when each of them has the lock. The client
id identifies the process: the metric distributed_lock_client_info contains it, and in a
Java service RedissonClient.getId returns it. If the lock client of the process has
core.WithNamedConnections, the address of the process is shown as Redis sees it. At most 50
holders and waiters are shown. Exit code 1 if the lock has no holder.

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
				fmt.Fprintf(std.err, "interlock who: not all addresses of holders are known, because the user needs +client|list: %v\n", err)
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

// addresses asks each master for the connections that are named after lock clients (core.WithNamedConnections). It
// returns the addresses by the id of the client, one for each host. If it fails, it returns the addresses found so
// far and an error.
func (r *target) addresses(ctx context.Context) (map[string][]string, error) {
	var mu sync.Mutex
	found := map[string][]string{}
	ask := func(ctx context.Context, node *redis.Client) error {
		list, err := node.ClientList(ctx).Result()
		mu.Lock()
		defer mu.Unlock()
		for line := range strings.Lines(list) {
			addClient(found, line)
		}
		return err
	}
	switch rdb := r.rdb.(type) {
	case *redis.ClusterClient:
		return found, rdb.ForEachMaster(ctx, ask)
	case *redis.Client:
		return found, ask(ctx, rdb)
	}
	return found, nil
}

// addClient adds the address in a line of CLIENT LIST to the client whose id is at the end of the name.
func addClient(found map[string][]string, line string) {
	var addr, name string
	for field := range strings.FieldsSeq(line) {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "addr":
			addr = value
		case "name":
			name = value
		}
	}
	id := name[strings.LastIndexByte(name, ':')+1:]
	if id == "" {
		return // the connection has no name
	}
	if !slices.ContainsFunc(found[id], func(other string) bool { return hostOf(other) == hostOf(addr) }) {
		found[id] = append(found[id], addr)
	}
}

func hostOf(addr string) string {
	host, _, _ := net.SplitHostPort(addr) //nolint:errcheck // the host is empty after an error
	return host
}
