// Livepage starts a shop under load and shows the page of its locks (package telemetry/lockz).
// Two of its endpoints take two locks in opposite orders, which leads to a deadlock. Others lose
// a lock, have long queues or have hostile keys.
//
//	go -C examples run ./livepage
//
// It prints the addresses of the page and runs until it is interrupted or the time of -for has passed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type settings struct {
	listen   string
	redis    string
	password string
	raw      bool
	traces   string
	lasts    time.Duration
}

func run() error {
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:8089", "address of the page and the shop; port 0: any free port")
	flag.StringVar(&s.redis, "redis", "", "URL of a Redis to use; empty: an embedded one")
	flag.StringVar(&s.password, "password", "teapot", "of the operator")
	flag.BoolVar(&s.raw, "raw", true, "show keys instead of their hashes")
	flag.StringVar(&s.traces, "traces", "", "URL of a trace, with {trace_id}; empty: no links")
	flag.DurationVar(&s.lasts, "for", 0, "end after this time; 0: run until interrupted")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if s.lasts > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.lasts)
		defer cancel()
	}
	rdb, closeRedis, err := openRedis(s.redis)
	if err != nil {
		return err
	}
	defer closeRedis()
	return demonstrate(ctx, s, rdb)
}

// openRedis embeds a Redis or uses an existing one.
func openRedis(url string) (rdb *redis.Client, closeAll func(), err error) {
	if url == "" {
		server, err := redistest.Start()
		if err != nil {
			return nil, nil, err
		}
		return server.Client(), server.Close, nil
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, errors.New("-redis: not a valid URL (go-redis would quote its password): write redis://[user:password@]host:port/db")
	}
	rdb = redis.NewClient(options)
	return rdb, func() { rdb.Close() }, nil
}

// demonstrate runs the shop until ctx is done.
func demonstrate(ctx context.Context, s settings, rdb *redis.Client) (err error) {
	page, err := newPage(s)
	if err != nil {
		return err
	}
	locks, err := core.New(rdb, core.WithPrefix("livepage:"), core.WithMaxKeyLength(20_000), core.WithObserver(page.Observer()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeClient(locks)) }()
	elsewhere, err := core.New(rdb, core.WithPrefix("livepage:")) // stands for another process
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeClient(elsewhere)) }()

	handler, err := newHandler(page, locks, s.password)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	address := "http://" + listener.Addr().String()
	fmt.Printf("the page:          %s/debug/locks\nwith its buttons:  %s/admin/locks  (user operator, password %s)\n", address, address, s.password)
	return serve(ctx, listener, handler, &load{address: address, locks: locks, elsewhere: elsewhere})
}

func newPage(s settings) (*lockz.Page, error) {
	opts := []lockz.Option{
		lockz.WithService("shop"),
		lockz.WithFleet(),
		lockz.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
		lockz.WithAuthorizer(func(r *http.Request) error {
			if !isOperator(r, s.password) {
				return errors.New("not the operator")
			}
			return nil
		}),
	}
	if s.raw {
		opts = append(opts, lockz.WithRawKeys())
	}
	if s.traces != "" {
		opts = append(opts, lockz.WithTraceURL(s.traces))
	}
	return lockz.New(opts...)
}

// serve runs the server and the load, and waits for both.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, l *load) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	l.run(ctx)
	server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// closeClient closes a client. Handlers that hold a lock have a second to return.
func closeClient(locks *core.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := locks.Close(ctx); err != nil && !errors.Is(err, core.ErrClosed) {
		return err
	}
	return nil
}
