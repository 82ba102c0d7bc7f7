package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// pollInterval returns the time between two polls of a caller of the polling libraries: a millisecond, or more if all
// callers together would poll more than 32 times in a millisecond. Shorter intervals load Redis and the callers
// with refusals, longer ones leave the lock unused.
func pollInterval(callers int) time.Duration {
	return max(time.Millisecond, time.Duration(callers)*time.Millisecond/32)
}

// newRedis returns the client for all libraries on go-redis: with the defaults, except that it has enough
// connections that the polling libraries do not queue for one.
func newRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 128})
}

// startRedis starts a server on a free port. Another process may take the port first, so startRedis tries three ports.
func startRedis(ctx context.Context) (addr string, stop func(), err error) {
	for range 3 {
		if addr, stop, err = startRedisOnce(ctx); err == nil {
			break
		}
	}
	return addr, stop, err
}

// startRedisOnce starts a server that writes nothing to disk.
func startRedisOnce(ctx context.Context) (addr string, stop func(), err error) {
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "benchmarks-redis-")
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start redis-server (or name one with -redis host:port): %w", err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	addr = net.JoinHostPort("127.0.0.1", port)
	if err := awaitRedis(ctx, addr, cmd.Process.Pid); err != nil {
		stop()
		return "", nil, err
	}
	return addr, stop, nil
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, err
}

// awaitRedis waits for at most five seconds until the server with the process ID pid answers. The answers of another
// server on its port do not count.
func awaitRedis(ctx context.Context, addr string, pid int) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := rdb.Info(ctx, "server").Result()
		if err == nil {
			if strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)) {
				return nil
			}
			err = errors.New("another server answers on the port")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis at %s: %w", addr, err)
		case <-tick.C:
		}
	}
}

// costs are counters of the server.
type costs struct {
	executed float64 // commands, including commands called by scripts
	sent     float64 // commands by clients
	cpu      float64 // seconds, user and system
}

// countCosts reads the counters of the server. Redis counts scripts and the commands that they call. sent excludes the
// called commands, except if a library also sends the same commands outside of scripts.
func countCosts(ctx context.Context, addr string, sends []string) (c costs, err error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	info, err := rdb.Info(ctx, "stats", "commandstats", "cpu").Result()
	if err != nil {
		return c, err
	}
	sends = append([]string{"eval", "evalsha", "subscribe", "ssubscribe", "unsubscribe", "sunsubscribe", "ping"}, sends...)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "total_commands_processed":
			_, err = fmt.Sscan(value, &c.executed)
		case "used_cpu_user", "used_cpu_sys":
			var seconds float64
			_, err = fmt.Sscan(value, &seconds)
			c.cpu += seconds
		}
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok && slices.Contains(sends, command) {
			var calls float64
			_, err = fmt.Sscanf(value, "calls=%g,", &calls)
			c.sent += calls
		}
		if err != nil {
			return c, fmt.Errorf("INFO of redis at %s, line %q: %w", addr, line, err)
		}
	}
	return c, nil
}
