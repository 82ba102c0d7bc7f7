package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// startTimeout is the maximum time until a new process answers. It is long, because a test must not fail only because the
// machine is busy.
const startTimeout = 2 * time.Minute

// process is one running redis-server.
type process struct {
	cmd    *exec.Cmd
	log    string        // the path of the output
	exited chan struct{} // closed when the process has exited
}

// launch starts the binary at path with args. It returns when the new process answers on port.
func launch(ctx context.Context, path, dir string, port int, args []string) (*process, error) {
	p, err := spawn(path, dir, args)
	if err != nil {
		return nil, err
	}
	if err := p.awaitReady(ctx, port); err != nil {
		p.kill()
		return nil, fmt.Errorf("redis-server on port %d: %w\n%s", port, err, p.logTail())
	}
	return p, nil
}

func spawn(path, dir string, args []string) (*process, error) {
	log, err := os.CreateTemp(dir, "redis-*.log")
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd := exec.Command(path, args...) // stopped by kill, not by a context
	p := &process{cmd: cmd, log: log.Name(), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	endWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // returns when the process exits; kill waits for it
		defer close(p.exited)
		_ = p.cmd.Wait()
	}()
	return p, nil
}

// awaitReady returns when p answers on port. If another process has taken the port, its answers do not count.
func (p *process) awaitReady(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	rdb := redis.NewClient(probeOptions(address(port)))
	defer func() { _ = rdb.Close() }()
	if err := poll(ctx, p.exited, func() error { return dial(ctx, port) }); err != nil {
		return err
	}
	return poll(ctx, p.exited, func() error {
		info, err := rdb.Info(ctx, "server").Result()
		if err != nil {
			return err
		}
		if own := "process_id:" + strconv.Itoa(p.cmd.Process.Pid) + "\r\n"; !strings.Contains(info, own) {
			return errors.New("another server answers on the port")
		}
		return nil
	})
}

// dial returns an error unless a process listens on port. It does not use go-redis, whose pool waits a second after a refused
// connection.
func dial(ctx context.Context, port int) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address(port))
	if err != nil {
		return err
	}
	return c.Close()
}

// kill kills the process and waits until it has exited. If the process has exited, kill does nothing.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

func (p *process) logTail() string {
	text, err := os.ReadFile(filepath.Clean(p.log))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// poll calls check every few milliseconds until it succeeds, ctx is done, or exited is closed. It
// returns the last error of check.
func poll(ctx context.Context, exited <-chan struct{}, check func() error) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-exited:
			return fmt.Errorf("the process ended: %w", err)
		case <-ctx.Done():
			return err
		}
	}
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// freePort returns a free port. Another process may take it at any time, so the caller must be ready to try another.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("the listener has the address %v, which is not a TCP address", l.Addr())
	}
	return addr.Port, nil
}

// probeOptions returns the options of a client that fails fast, for polling.
func probeOptions(addr string) *redis.Options {
	return &redis.Options{
		Addr: addr, PoolSize: 1, MaxRetries: -1, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
