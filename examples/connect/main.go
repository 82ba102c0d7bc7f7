// Connect is a complete Connect service with locks in its .proto and in a rule file: the
// handler, the guard, fallbacks, reload and shutdown.
//
//	go -C examples run ./connect
//	go -C examples run ./connect -serve
//
// It embeds a Redis; -redis uses an existing one. Without -serve, a client calls the service in
// each protocol, while the locks are free and while another program holds them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/redistest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "connect:", err)
		os.Exit(1)
	}
}

type settings struct {
	redis, rules, address string
	serve                 bool
}

func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("connect", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.redis, "redis", "", "`URL` of a Redis to use, such as redis://localhost:6379. Default: an embedded one")
	flags.StringVar(&s.rules, "rules", "connect/locks.yaml", "the rule `file`, which is reloaded when it changes")
	flags.StringVar(&s.address, "address", "127.0.0.1:0", "where to `listen`")
	flags.BoolVar(&s.serve, "serve", false, "serve until it is interrupted")
	return s, flags.Parse(args)
}

// run runs the program. It returns nil if every answer was correct.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	s, err := parse(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	rdb, closeRedis, err := openRedis(s.redis)
	if err != nil {
		return err
	}
	defer closeRedis()
	service, err := start(ctx, rdb, &s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.close(context.WithoutCancel(ctx))) }()
	if s.serve {
		return service.serveUntilDone(ctx, out)
	}
	return service.try(ctx, out)
}

// openRedis connects to a Redis or embeds one.
func openRedis(url string) (rdb *redis.Client, closeRedis func(), err error) {
	if url == "" {
		server, err := redistest.Start()
		if err != nil {
			return nil, nil, err
		}
		return server.Client(), server.Close, nil
	}
	options, err := redis.ParseURL(url)
	if err != nil { // its error would quote the password
		return nil, nil, errors.New("-redis: write redis://[user:password@]host:port/db")
	}
	rdb = redis.NewClient(options)
	return rdb, func() { _ = rdb.Close() }, nil
}
