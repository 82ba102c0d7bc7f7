package fence_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/fence"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

const largest = 1<<53 - 1 // token

func TestCommand(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		for _, step := range []struct {
			token int64
			cmd   []any
			reply any
			err   error
		}{
			{5, []any{"SET", "k", "a"}, "OK", nil},
			{5, []any{"APPEND", "k", "b"}, int64(2), nil}, // the same token passes again
			{7, []any{"GET", "k"}, "ab", nil},             // a read claims
			{6, []any{"SET", "k", "c"}, nil, fence.ErrStale},
			{6, []any{"GET", "k"}, nil, fence.ErrStale},
			{6, []any{"SET", "other", "c"}, "OK", nil}, // each key has its own token
			{6, []any{"SET", "{k}", "c"}, "OK", nil},
			{8, []any{"GET", "missing"}, nil, redis.Nil},
			{7, []any{"GET", "k"}, "ab", nil},
			{largest, []any{"DEL", "k"}, int64(1), nil},
			{largest - 1, []any{"SET", "k", "d"}, nil, fence.ErrStale}, // the token stays when the key is gone
			{largest, []any{"GET", "k"}, nil, redis.Nil},
		} {
			reply, err := fence.Command(t.Context(), b.Client, step.token, step.cmd[0].(string), step.cmd[1].(string), step.cmd[2:]...).Result()
			if reply != step.reply || !errors.Is(err, step.err) {
				t.Errorf("token %d, %v: got %v, %v, want %v, %v", step.token, step.cmd, reply, err, step.reply, step.err)
			}
		}
	})
}

func TestCommand_Errors(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		ctx := t.Context()
		locktest.Must(t, fence.Command(ctx, b.Client, 7, "SET", "k", "v").Err())
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		for words, err := range map[string]error{
			"6 is smaller than 7":  fence.Command(ctx, b.Client, 6, "SET", "k", "w").Err(),
			"WRONGTYPE":            fence.Command(ctx, b.Client, 7, "HSET", "k", "f", "w").Err(),
			"pipeline":             fence.Command(ctx, b.Pipeline(), 7, "SET", "k", "w").Err(),
			`"a}b" has a closing`:  fence.Command(ctx, b.Client, 7, "SET", "a}b", "w").Err(),
			`"a{}b" has a closing`: fence.Command(ctx, b.Client, 7, "SET", "a{}b", "w").Err(),
			"canceled":             fence.Command(canceled, b.Client, 7, "SET", "k", "w").Err(), // a hold that is lost
		} {
			if err == nil || !strings.Contains(err.Error(), words) || errors.Is(err, fence.ErrStale) != strings.Contains(words, "smaller") {
				t.Errorf("got %v, want an error with %q", err, words)
			}
		}
		locktest.WantSame(t, "value", b.Get(ctx, "k").Val(), "v")
	})
}

// A script passes a limited number of arguments to a command. Command refuses more of them before it writes the token.
func TestCommand_Arguments(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		ctx, most := t.Context(), make([]any, 5000)
		for i := range most {
			most[i] = i
		}
		locktest.Must(t, fence.Command(ctx, b.Client, 5, "RPUSH", "k", most...).Err())
		locktest.WantSame(t, "length", b.LLen(ctx, "k").Val(), int64(len(most)))
		for _, more := range []int{1, 5000} {
			err := fence.Command(ctx, b.Client, 7, "RPUSH", "k", append(slices.Clip(most), slices.Repeat([]any{"x"}, more)...)...).Err()
			if err == nil || !strings.Contains(err.Error(), "at most 5000") {
				t.Errorf("%d arguments: got %v", len(most)+more, err)
			}
		}
		locktest.WantSame(t, "length", b.LLen(ctx, "k").Val(), int64(len(most)))
		locktest.WantSame(t, "token", b.Get(ctx, "{k}:interlock_fence").Val(), "5")
	})
}

// A Redis user needs only the rights that the comment of Command names.
func TestCommand_Rights(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locktest.Must(t, b.Do(t.Context(), "ACL", "SETUSER", "writer", "on", ">secret", "resetchannels", "-@all",
		"~balance:42", "~{balance:42}:interlock_fence", "+evalsha", "+eval", "+get", "+set", "+hset").Err())
	rdb := b.Connect(func(o *redis.Options) { o.Username, o.Password, o.DisableIdentity = "writer", "secret", true })
	locktest.WantOK(t, fence.Command(t.Context(), rdb, 5, "HSET", "balance:42", "euros", 70).Err())
	locktest.WantSame(t, "the token", b.Get(t.Context(), "{balance:42}:interlock_fence").Val(), "5")
}

// A command that Redis refuses changes nothing. Its token stays, because a holder with a larger token exists.
func TestCommand_Denied(t *testing.T) {
	t.Parallel()
	for denied, tokens := range map[string]string{"get": "4", "set": "4", "hset": "5"} {
		b := locktest.Real(t)
		locktest.WantOK(t, fence.Command(t.Context(), b.Client, 4, "HSET", "k", "f", "old").Err())
		locktest.Must(t, b.Do(t.Context(), "ACL", "SETUSER", "writer", "on", ">secret", "~*", "+@all", "-"+denied).Err())
		rdb := b.Connect(func(o *redis.Options) { o.Username, o.Password = "writer", "secret" })
		for range 2 { // executed twice
			if err := fence.Command(t.Context(), rdb, 5, "HSET", "k", "f", "new").Err(); err == nil || errors.Is(err, fence.ErrStale) {
				t.Errorf("without %s: got %v", denied, err)
			}
			locktest.WantSame(t, "the value", b.HGet(t.Context(), "k", "f").Val(), "old")
			locktest.WantSame(t, "the token", b.Get(t.Context(), "{k}:interlock_fence").Val(), tokens)
		}
		locktest.WantOK(t, fence.Command(t.Context(), b.Client, 5, "HSET", "k", "f", "new").Err())
	}
}

// The two keys are in one slot of a Cluster. Otherwise the error is CROSSSLOT.
func TestCommand_Cluster(t *testing.T) {
	t.Parallel()
	c := locktest.NewCluster(t)
	for _, key := range []string{"balance:42", "{a}:b", "a{b}c", "a{b", "{", "a{{b}c", "a}{b}"} {
		locktest.WantOK(t, fence.Command(t.Context(), c.Redis, 7, "SET", key, "v").Err())
		if err := fence.Command(t.Context(), c.Redis, 6, "SET", key, "w").Err(); !errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
