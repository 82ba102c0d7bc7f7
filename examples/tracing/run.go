package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/redistest"
)

// run starts both services, sends the orders and shows the trace.
func run(ctx context.Context, out io.Writer, redisURL, otlp string) (err error) {
	connect, closeRedis, err := openRedis(redisURL)
	if err != nil {
		return err
	}
	defer closeRedis()
	all := &traces{endpoint: otlp}
	defer func() { err = errors.Join(err, all.close(context.WithoutCancel(ctx))) }()

	stock, err := startStock(ctx, connect(), all)
	if err != nil {
		return err
	}
	defer stock.close()
	shop, err := startShop(ctx, connect(), all, stock.addr)
	if err != nil {
		return err
	}
	defer shop.close()
	id, err := evening(ctx, all, shop, stock)
	if err != nil {
		return err
	}
	shop.close() // after the last requests, so that their spans have ended
	stock.close()
	if otlp != "" {
		fmt.Fprintf(out, "trace %s was sent to %s\n", id, otlp)
		return nil
	}
	return all.kept.print(out)
}

// openRedis returns a function that creates clients of a Redis. Without a URL, it embeds a Redis.
func openRedis(url string) (connect func() *redis.Client, closeAll func(), err error) {
	if url == "" {
		server, err := redistest.Start()
		if err != nil {
			return nil, nil, err
		}
		return func() *redis.Client { return server.Client() }, server.Close, nil
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, errors.New("-redis: not a valid URL (go-redis would quote its password): write redis://[user:password@]host:port/db")
	}
	var clients []*redis.Client
	connect = func() *redis.Client {
		clients = append(clients, redis.NewClient(options))
		return clients[len(clients)-1]
	}
	return connect, func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}, nil
}
