package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/redistest"
)

// backend is the Redis of the demonstration.
type backend struct {
	url    string
	about  string
	prefix string // the prefix of every key
	client func() *redis.Client
	close  func()
}

// openBackend embeds a Redis or uses an existing one. In an existing one, all keys have a
// separate prefix, so that no keys of other programs are touched.
func openBackend(url string) (*backend, error) {
	if url == "" {
		server, err := redistest.Start()
		if err != nil {
			return nil, err
		}
		about := "an embedded one at " + server.Addr() + " (-redis uses a real one)"
		client := func() *redis.Client { return server.Client() }
		return &backend{url: server.URL(), about: about, prefix: "shop:", client: client, close: server.Close}, nil
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("-redis: not a valid URL (go-redis would quote its password): write redis://[user:password@]host:port/db")
	}
	client := func() *redis.Client { return redis.NewClient(options) }
	return &backend{
		url: url, about: options.Addr, prefix: "declared-" + rand.Text()[:6] + ":",
		client: client, close: func() {},
	}, nil
}

// readLocks returns the locks in Redis, each key with its holder and count, except the locks of the traffic.
func (d *demo) readLocks(ctx context.Context) (map[string]string, error) {
	locks := map[string]string{}
	keys := d.redis.Scan(ctx, 0, d.backend.prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		name := strings.TrimPrefix(keys.Val(), d.backend.prefix)
		if strings.Contains(name, trafficMark) {
			continue
		}
		holders, err := d.redis.HGetAll(ctx, keys.Val()).Result()
		if err != nil {
			return nil, err
		}
		for holder, count := range holders {
			locks[name] = fmt.Sprintf("{%q: %q}", holder, count)
		}
	}
	return locks, keys.Err()
}
