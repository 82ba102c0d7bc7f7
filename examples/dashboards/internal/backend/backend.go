// Package backend provides the Redis of the example: a redis-server that it starts, an embedded Redis if that program is
// missing, or an existing Redis.
package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/examples/dashboards/internal/child"
)

// Redis is a running Redis.
type Redis struct {
	URL   string // the address for the output, without a password
	About string // a description for the output

	options func() *redis.Options
	stop    func() error
	start   func(context.Context) error
	close   func()
}

// ErrNotOurs is returned by Stop and Start for an existing Redis.
var ErrNotOurs = errors.New("the example did not start this Redis")

// Open uses the Redis at url. If url is empty, it starts redis-server or, if that program is missing, an embedded Redis.
func Open(ctx context.Context, url string) (*Redis, error) {
	if url != "" {
		return running(url)
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return embedded()
	}
	return process(ctx, path)
}

// Client creates a client. Close the client before the Redis.
func (r *Redis) Client() *redis.Client { return redis.NewClient(r.options()) }

// Stop stops the Redis, which loses its data.
func (r *Redis) Stop() error { return r.stop() }

// Start starts the Redis again at the same address.
func (r *Redis) Start(ctx context.Context) error { return r.start(ctx) }

// Close stops the Redis unless it is an existing one.
func (r *Redis) Close() { r.close() }

func running(url string) (*Redis, error) {
	options, err := redis.ParseURL(url)
	if err != nil { // whose error quotes the text, which may be the password
		return nil, errors.New("-redis: want redis://[user:password@]host:port/db, with %25 for % and %2F for / in a password")
	}
	return &Redis{
		URL: fmt.Sprintf("redis://%s/%d", options.Addr, options.DB), About: "running already", options: parseOptions(url),
		stop:  func() error { return ErrNotOurs },
		start: func(context.Context) error { return ErrNotOurs },
		close: func() {},
	}, nil
}

func embedded() (*Redis, error) {
	server, err := redistest.Start()
	if err != nil {
		return nil, err
	}
	return &Redis{
		URL: server.URL(), About: "embedded, because redis-server is not on PATH", options: parseOptions(server.URL()),
		stop:  func() error { server.Down(); return nil },
		start: func(context.Context) error { server.Up(); return nil },
		close: server.Close,
	}, nil
}

func process(ctx context.Context, path string) (*Redis, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p := &server{path: path, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), port: port}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	url := "redis://" + p.addr
	return &Redis{
		URL: url, About: path + ", started here", options: parseOptions(url),
		stop: p.stop, start: p.start, close: func() { _ = p.stop() }, //nolint:errcheck // the process ends with this one
	}, nil
}

func parseOptions(url string) func() *redis.Options {
	return func() *redis.Options {
		options, err := redis.ParseURL(url)
		if err != nil {
			return &redis.Options{} // the URL was parsed earlier
		}
		return options
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	_, text, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// server is a redis-server process that writes nothing to disk.
type server struct {
	path, addr string
	port       int
	cmd        *exec.Cmd
}

func (s *server) start(ctx context.Context) error {
	// The process outlives ctx: stop kills it after the programs that use it have stopped.
	s.cmd = child.Command(s.path, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer client.Close()
	for {
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, s.stop())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *server) stop() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = s.cmd.Wait() // the error only reports the kill
	return nil
}
