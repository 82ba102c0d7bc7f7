package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// floor is the minimum cost of a lock on Redis: the two scripts that Interlock sends for a free lock, on the
// same kind of client and without other work. The scripts use pooled connections, or auto-pipelining with one
// batch or many batches (full duplex) in progress. A floor never waits for a lock and has no watchdog and no
// deadline.
type floor struct {
	rdb              redis.UniversalClient
	close            func() error
	acquire, release string // digests
	next             atomic.Int64
}

// floors returns a floor for each way in which go-redis can send commands.
func floors() []contender {
	half, full := redis.DefaultBlockingAutoPipelineOptions(), redis.DefaultBlockingAutoPipelineOptions()
	full.FullDuplex = true
	return []contender{
		{name: bareFloor, open: func(addr string, _ int) (Locker, error) {
			rdb := newRedis(addr)
			return openFloor(rdb, rdb)
		}},
		{name: halfDuplexFloor, open: pipelined(half)},
		{name: fullDuplexFloor, open: pipelined(full)},
	}
}

const (
	bareFloor       = "bare"
	halfDuplexFloor = "half duplex"
	fullDuplexFloor = "full duplex"
)

func pipelined(opts *redis.AutoPipelineOptions) func(addr string, callers int) (Locker, error) {
	return func(addr string, _ int) (Locker, error) {
		rdb := newRedis(addr)
		pipe, err := rdb.AutoPipelineWithOptions(opts)
		if err != nil {
			return nil, err
		}
		return openFloor(rdb, pipe)
	}
}

func openFloor(owned *redis.Client, rdb redis.UniversalClient) (Locker, error) {
	f := &floor{rdb: rdb, close: owned.Close}
	var err error
	if f.acquire, err = loadScript(owned, "token", "acquire"); err != nil {
		return nil, err
	}
	if f.release, err = loadScript(owned, "notify", "release"); err != nil {
		return nil, err
	}
	return f, nil
}

// loadScript loads a script of Interlock, with its common header, into Redis. It returns the digest.
func loadScript(rdb *redis.Client, before, name string) (string, error) {
	front, err := scriptSource(before)
	if err != nil {
		return "", err
	}
	source, err := scriptSource(name)
	if err != nil {
		return "", err
	}
	digest, err := rdb.ScriptLoad(context.Background(), front+source).Result()
	if err != nil {
		return "", fmt.Errorf("load %s.lua: %w", name, err)
	}
	return digest, nil
}

// scriptSource reads a script of Interlock from the source tree, because its folder is internal to
// core.
func scriptSource(name string) (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", fmt.Errorf("%s.lua: built without the path of its source", name)
	}
	path := filepath.Join(filepath.Dir(here), "..", "..", "core", "internal", "redisstore", "lua", name+".lua")
	source, err := os.ReadFile(path)
	return string(source), err
}

// Lock returns an error if the key is taken.
func (f *floor) Lock(ctx context.Context, key string) (Unlock, error) {
	field := "0b6f1b5e-0000-4000-8000-000000000000:" + strconv.FormatInt(f.next.Add(1), 10)
	reply, err := f.rdb.EvalSha(ctx, f.acquire, []string{key}, field, lease.Milliseconds()).Int64()
	if err != nil || reply != 1 {
		return nil, fmt.Errorf("acquire script: reply %d, %w", reply, err)
	}
	return func(ctx context.Context) error {
		channel := "redisson_lock__channel:{" + key + "}"
		reply, err := f.rdb.EvalSha(ctx, f.release, []string{key}, field, channel, "publish").Int64()
		if err != nil || reply < 1 {
			return fmt.Errorf("release script: reply %d, %w", reply, err)
		}
		return nil
	}, nil
}

func (f *floor) Close() error { return f.close() }
