package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/core/internal/topology"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/redis/go-redis/v9"
)

// Survey is the report of the servers about the other clients that share the locks.
type Survey struct {
	// Sharding reports whether the servers of a Cluster have sharded pub/sub.
	Sharding bool
	// Stray reports whether the server belongs to a Cluster while the client is for a single server.
	Stray bool
	// Elsewhere lists the channels of locks, in order, on which a client listens in the pub/sub mode
	// that the Store does not use. Such a client does not receive the messages of the Store.
	Elsewhere []string
	// Unasked joins the errors of the servers that did not answer; nil if all did.
	Unasked error
}

// nodeTimeouts is the number of timeouts that a survey of one Cluster node may take, for the connection
// and the commands.
const nodeTimeouts = 4

// Survey asks all nodes at the same time about the channels of keys that begin with prefix. In a
// Cluster it opens separate connections. It waits at most nodeTimeouts timeouts for a node.
func (s *Store) Survey(ctx context.Context, prefix string) (Survey, error) {
	v := &surveyor{store: s, prefix: prefix}
	if s.cluster == nil {
		v.ask(ctx, s.single)
		if v.found.Stray = topology.InCluster(ctx, s.single); !v.found.Stray {
			v.unasked = nil // on a single server no such client is expected, so the user need not have the right to ask
		}
		return v.result(), nil
	}
	probe := s.wire.Probe()
	defer probe.Close() //nolint:errcheck // the probe carries no commands
	err := probe.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error {
		ctx, cancel := context.WithTimeout(ctx, nodeTimeouts*s.cfg.Timeout)
		defer cancel()
		v.askSharding(ctx, node)
		v.ask(ctx, node)
		return nil
	})
	v.found.Sharding = v.sharded > 0 || v.classic == 0 && s.Sharded() // if no node answered, the mode that the Store uses
	return v.result(), err
}

// surveyor collects the answers of several nodes concurrently.
type surveyor struct {
	store  *Store
	prefix string

	mu      sync.Mutex
	found   Survey
	sharded int // nodes with sharded pub/sub
	classic int // nodes without it
	unasked []error
}

// askSharding asks one node whether it has sharded pub/sub.
func (v *surveyor) askSharding(ctx context.Context, node *redis.Client) {
	has, err := hasSharding(ctx, node)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case err != nil: // the next question reports it
	case has:
		v.sharded++
	default:
		v.classic++
	}
}

// ask asks one node for the channels whose listeners do not receive the messages of the Store.
func (v *surveyor) ask(ctx context.Context, node *redis.Client) {
	const redissons = "redisson_*"
	list := node.PubSubShardChannels
	if v.store.Sharded() {
		list = node.PubSubChannels
	}
	channels, err := list(ctx, redissons).Result()
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil && !wire.UnknownCommand(err) { // a server without sharded pub/sub has no such listeners
		v.unasked = append(v.unasked, fmt.Errorf("%s: %w", node.Options().Addr, err))
	}
	for _, channel := range channels {
		if ofKeys(channel, v.prefix) {
			v.found.Elsewhere = append(v.found.Elsewhere, channel)
		}
	}
}

func (v *surveyor) result() Survey {
	slices.Sort(v.found.Elsewhere)
	v.found.Elsewhere = slices.Compact(v.found.Elsewhere)
	v.found.Unasked = errors.Join(v.unasked...)
	return v.found
}

// Server describes a master by its INFO.
type Server struct {
	Addr     string
	Name     string // for example "redis 7.0.15" or "valkey 8.1.1"
	Role     string // "master" or "slave"
	MaxBytes int64  // maxmemory; 0 means no limit
	Policy   string // maxmemory-policy
	Err      error  // the error if it did not answer
}

// Servers asks every master for its INFO. A Server that did not answer has an Err. Servers itself fails
// only if the masters are not known.
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

// serverOf asks for all sections, because servers before Redis 7 accept one name at most.
func serverOf(ctx context.Context, node *redis.Client) Server {
	text, err := node.Info(ctx).Result()
	facts := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, is := strings.Cut(strings.TrimSpace(line), ":"); is {
			facts[name] = value
		}
	}
	server := Server{Addr: node.Options().Addr, Role: facts["role"], Policy: facts["maxmemory_policy"], Err: err}
	server.MaxBytes, _ = strconv.ParseInt(facts["maxmemory"], 10, 64) //nolint:errcheck // absent: no limit
	server.Name = strings.TrimSpace("redis " + facts["redis_version"])
	for _, other := range []string{"valkey", "dragonfly"} { // their redis_version names the Redis that they are compatible with
		if version := facts[other+"_version"]; version != "" {
			server.Name = other + " " + version
		}
	}
	return server
}

// Forget deletes the key of a lock and all keys that a lock of this kind keeps beside it, even if the lock
// is held.
func (s *Store) Forget(ctx context.Context, k *Kind, key string) error {
	node, err := s.node(ctx, key)
	if err != nil {
		return err
	}
	for _, name := range append(k.otherKeys(key), key) {
		if err := node.Del(ctx, name).Err(); err != nil {
			return err
		}
	}
	return nil
}

// FirstInQueue returns the field of the next waiter for a fair lock.
func (s *Store) FirstInQueue(ctx context.Context, key string) (string, error) {
	node, err := s.node(ctx, key)
	if err != nil {
		return "", err
	}
	return node.LIndex(ctx, FairQueue(key), 0).Result()
}

// Rights returns the rules for ACL SETUSER that grant the rights for some kinds of lock whose keys begin
// with prefix: key patterns, channel patterns, commands. It reads the commands from the scripts.
func (s *Store) Rights(prefix string, kinds []*Kind) string {
	keys := keysOf(prefix)
	channels, commands := make(map[string]bool), make(map[string]bool)
	for name := range strings.FieldsSeq(s.usualCommands()) {
		commands[name] = true
	}
	call := regexp.MustCompile(`redis\.p?call\('(\w+)'`)
	for _, k := range kinds {
		for _, key := range k.otherKeys("") {
			if before, _, _ := strings.Cut(key, "{"); before != "" {
				keys[before+"*"] = true
			}
		}
		if before, _, _ := strings.Cut(k.Channel(""), "{"); before != "" {
			channels[before+"*"] = true
		}
		for _, source := range k.Sources() {
			for _, found := range call.FindAllStringSubmatch(source, -1) {
				commands[strings.ToLower(found[1])] = true
			}
		}
	}
	if s.cfg.Notices {
		for key := range keysOf(prefix) {
			channels[s.noticePrefix()+key] = true
		}
	}
	rules := prefixEach("~", keys)
	return strings.Join(append(append(rules, prefixEach("&", channels)...), prefixEach("+", commands)...), " ")
}

// keysOf returns patterns for the keys that begin with prefix and for the names that are derived from them with a suffix.
func keysOf(prefix string) map[string]bool {
	return map[string]bool{escape(prefix) + "*": true, "{" + escape(prefix) + "*": true}
}

// usualCommands lists the commands that the Store sends for every kind of lock.
func (s *Store) usualCommands() string {
	usual := "eval evalsha ping info del publish subscribe unsubscribe"
	if s.cluster != nil {
		usual += " spublish ssubscribe sunsubscribe pubsub asking cluster command"
	}
	if s.Database() != 0 {
		usual += " select"
	}
	if s.cfg.Replication.Acks != wire.NoAcks {
		usual += " wait"
	}
	return usual
}

func prefixEach(mark string, set map[string]bool) []string {
	list := slices.Sorted(maps.Keys(set))
	for i := range list {
		list[i] = mark + list[i]
	}
	return list
}

// Username returns the Redis user of the Store.
func (s *Store) Username() string {
	if s.cluster != nil {
		return cmp.Or(s.cluster.Options().Username, "default")
	}
	return cmp.Or(s.single.Options().Username, "default")
}
