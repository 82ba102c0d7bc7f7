package main

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// addresses asks each master for the connections that are named after lock clients (core.WithNamedConnections). It
// returns the addresses by the id of the client, one of each host. With an error it returns what it has found.
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

// addClient adds the address in a line of CLIENT LIST to the addresses of the client whose id ends the name.
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
		return // it has no name
	}
	if !slices.ContainsFunc(found[id], func(other string) bool { return hostOf(other) == hostOf(addr) }) {
		found[id] = append(found[id], addr)
	}
}

func hostOf(addr string) string {
	host, _, _ := net.SplitHostPort(addr) //nolint:errcheck // empty then
	return host
}
