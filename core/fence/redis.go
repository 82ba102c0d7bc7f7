package fence

import (
	"context"
	"crypto/fips140"
	_ "embed" // for the script
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed command.lua
var source string

var script = newScript() //nolint:gochecknoglobals // it does not change

// newScript computes the SHA-1 by which Redis names the script. It protects nothing, so FIPS mode need not refuse it.
func newScript() (s *redis.Script) {
	fips140.WithoutEnforcement(func() { s = redis.NewScript(source) })
	return s
}

// staleCode is the first word of the error with which the script refuses a token.
const staleCode = "STALETOKEN"

// Command runs a command whose first argument is its only key, such as SET, HSET, INCRBY, DEL or GET. If a holder with a
// larger token has already run a command on this key, nothing changes, and the error of the result is [ErrStale].
// Otherwise the result is the reply of the command, of the type that Redis returns to scripts:
//
//	err := fence.Command(ctx, rdb, hold.Token(), "HSET", "balance:42", "euros", 70).Err()
//
// Command costs one round trip. rdb is any client of go-redis, but not a pipeline. At most 5,000 arguments may follow the
// key. The key must not be the name of a lock. Redis keeps the largest token under a second key:
// {balance:42}:interlock_fence for balance:42, and balance:{42}::interlock_fence for balance:{42}. The second key never
// expires. A Redis that evicts keys may evict it alone, and then accepts any token. Command refuses a key with a closing
// brace but no hash tag, because no second key would be in its slot of a Cluster. Nothing fences a write without Command,
// or a write of another key: use one hash for data that belongs together.
//
// After a network error go-redis may send a command again, with the same token. For INCRBY and other commands that must not
// run twice, set redis.Options.MaxRetries to -1.
//
// A Redis user with restricted rights needs +evalsha, +eval, +get, +set, the command, and both keys.
func Command(ctx context.Context, rdb redis.Scripter, token int64, command, key string, args ...any) *redis.Cmd {
	second, err := tokenKey(key)
	if err := errors.Join(checkCommand(rdb, token, len(args)), err); err != nil {
		refused := redis.NewCmd(ctx)
		refused.SetErr(err)
		return refused
	}
	cmd := script.Run(ctx, rdb, []string{key, second}, append([]any{token, command}, args...)...)
	if err := cmd.Err(); redis.HasErrorPrefix(err, staleCode) {
		cmd.SetErr(fmt.Errorf("%w: %w", ErrStale, err))
	}
	return cmd
}

// maxArguments is the largest number of arguments. The stack of Lua takes about 8,000 in Redis and a few more than 5,000
// in the embedded server of package redistest, and the script would fail only after it has written the token.
const maxArguments = 5000

func checkCommand(rdb redis.Scripter, token int64, arguments int) error {
	if _, ok := rdb.(redis.Pipeliner); ok {
		return errors.New("fence: Command on a pipeline: want a client, because a pipeline has no answer yet")
	}
	if arguments > maxArguments {
		return fmt.Errorf("fence: Command with %d arguments after the key: want at most %d; run several commands with the same token", arguments, maxArguments)
	}
	return checkToken(token)
}

// tokenKey returns the key of the largest token. It is in the slot of key, and no other key has the same token key. If key
// has no hash tag, its slot is the slot of the whole key, so the whole key becomes the hash tag.
func tokenKey(key string) (string, error) {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	switch {
	case closed && tag != "":
		return key + "::interlock_fence", nil
	case strings.Contains(key, "}"):
		return "", fmt.Errorf("fence: key %q has a closing brace but no hash tag: write one hash tag, such as balance:{42}, or no braces", key)
	default:
		return "{" + key + "}:interlock_fence", nil
	}
}
