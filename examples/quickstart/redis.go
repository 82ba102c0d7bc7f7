package main

import (
	"crypto/rand"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/redistest"
)

// backend is the Redis of the demonstration.
type backend struct {
	url    string // for processes that the outage does not affect
	about  string
	prefix string // the prefix of every key
	outage outage
	client func() *redis.Client
	close  func()
}

// outage makes a Redis unreachable for the shop.
type outage interface {
	Down()
	Up()
}

func openBackend(url string) (*backend, error) {
	if url == "" {
		return startEmbedded()
	}
	return openThroughRelay(url)
}

// startEmbedded starts a Redis inside this process.
func startEmbedded() (*backend, error) {
	server, err := redistest.Start()
	if err != nil {
		return nil, err
	}
	return &backend{
		url:    server.URL(),
		about:  "an embedded Redis at " + server.Addr() + " (-redis uses a real one)",
		prefix: "shop:",
		outage: server,
		client: func() *redis.Client { return server.Client() },
		close:  server.Close,
	}, nil
}

// openThroughRelay uses an existing Redis through a relay that can cut connections. Keys have a separate
// prefix, so that no keys of other programs are touched.
func openThroughRelay(url string) (*backend, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("-redis: not a valid URL (go-redis would quote its password): write redis://[user:password@]host:port/db")
	}
	relay, err := newRelay(options.Network, options.Addr)
	if err != nil {
		return nil, err
	}
	about := options.Addr + ", reached through a relay that can be cut"
	options.Network, options.Addr = "tcp", relay.addr()
	return &backend{
		url:    url,
		about:  about,
		prefix: "quickstart-" + rand.Text()[:6] + ":",
		outage: relay,
		client: func() *redis.Client { return redis.NewClient(options) },
		close:  relay.close,
	}, nil
}
