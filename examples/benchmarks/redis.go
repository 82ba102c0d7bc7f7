package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// pollInterval is how often each caller of the polling libraries looks: every
// millisecond, or as often as makes 32 looks in a millisecond by all callers
// together. Shorter intervals make Redis and the callers busy with refusals, longer
// ones leave the lock unused.
func pollInterval(callers int) time.Duration {
	return max(time.Millisecond, time.Duration(callers)*time.Millisecond/32)
}

// newRedis is the client of everybody who uses go-redis: the defaults, and
// connections enough that the polling libraries do not queue for one.
func newRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 128})
}

// startRedis starts a server of our own on a free port, with nothing written to disk.
func startRedis(ctx context.Context) (addr string, stop func(), err error) {
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
	if err := ping(ctx, addr); err != nil {
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

// ping waits until the server answers, five seconds at most.
func ping(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := rdb.Ping(ctx).Err()
		if err == nil {
			return nil
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
	executed float64 // commands, those called by scripts included
	sent     float64 // commands by clients
	cpu      float64 // seconds, user and system
}

// countCosts reads what the server has executed and used so far. Redis counts a script and
// the commands that it calls alike; sent leaves the latter out, except for those of a
// library that sends the same commands outside of scripts.
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
