package redisstore

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Server is a master as its INFO describes it.
type Server struct {
	Addr     string
	Name     string // such as "redis 7.0.15" or "valkey 8.1.1"
	Role     string // "master" or "slave"
	MaxBytes int64  // maxmemory; 0 means no limit
	Policy   string // maxmemory-policy
	Err      error  // why it did not answer
}

// Servers asks every master for its INFO. Err of a Server says why it did not answer. The error says
// that the masters are not known.
func (s *Store) Servers(ctx context.Context) ([]Server, error) {
	if s.cluster == nil {
		return []Server{serverOf(ctx, s.single)}, nil
	}
	var mu sync.Mutex
	var list []Server
	err := s.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		server := serverOf(ctx, s.clone(node))
		mu.Lock()
		defer mu.Unlock()
		list = append(list, server)
		return nil
	})
	return list, err
}

// serverOf asks for all sections, because servers before Redis 7 take one name at most.
func serverOf(ctx context.Context, node *redis.Client) Server {
	text, err := node.Info(ctx).Result()
	facts := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, is := strings.Cut(strings.TrimSpace(line), ":"); is {
			facts[name] = value
		}
	}
	server := Server{Addr: node.Options().Addr, Role: facts["role"], Policy: facts["maxmemory_policy"], Err: err}
	server.MaxBytes, _ = strconv.ParseInt(facts["maxmemory"], 10, 64) //nolint:errcheck // absent: no limit is known
	server.Name = strings.TrimSpace("redis " + facts["redis_version"])
	for _, other := range []string{"valkey", "dragonfly"} { // their redis_version is the Redis that they are compatible with
		if version := facts[other+"_version"]; version != "" {
			server.Name = other + " " + version
		}
	}
	return server
}

// Forget deletes the key of a lock and all that a lock of this kind keeps beside it, also if it
// is held.
func (s *Store) Forget(ctx context.Context, k *Kind, key string) error {
	node, err := s.node(ctx, key)
	if err != nil {
		return err
	}
	for _, name := range append(k.beyond(key), key) {
		if err := node.Del(ctx, name).Err(); err != nil {
			return err
		}
	}
	return nil
}

// FirstInQueue returns the field of the waiter that is next at a fair lock.
func (s *Store) FirstInQueue(ctx context.Context, key string) (string, error) {
	node, err := s.node(ctx, key)
	if err != nil {
		return "", err
	}
	return node.LIndex(ctx, FairQueue(key), 0).Result()
}
