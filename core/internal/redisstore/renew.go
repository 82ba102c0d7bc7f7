package redisstore

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Claim is a lock and the field that is believed to hold it.
type Claim struct {
	Key, Field string
}

// Verdict is what a renewal found out about one Claim.
type Verdict struct {
	Held bool
	Err  error // no answer, or an error reply; Held then means nothing
}

// MayLand says whether the renewal may still be executed.
func (v Verdict) MayLand() bool { return v.Err != nil && fateOf(v.Err) == Unknown }

// renewChunk is how many locks one script renews outside a Cluster. Redisson's
// lockWatchdogBatchSize is the same.
const renewChunk = 100

// Renew raises the TTL of all claims to lease, or only looks when lease is 0. All
// claims live on the node that was named by NodeName. It takes a connection of the
// caller's pool for itself and has its own time limit, so that it neither waits
// behind the lanes nor delays them; a pool that is used up delays it.
// The verdicts are in the order of the claims.
func (s *Store) Renew(ctx context.Context, claims []Claim, lease time.Duration) []Verdict {
	size := renewChunk
	if s.cluster != nil {
		size = 1 // a script over two keys fails while their slot moves
	}
	verdicts := make([]Verdict, 0, len(claims))
	for first := 0; first < len(claims); first += pipelined * size {
		verdicts = append(verdicts, s.renewPart(ctx, claims[first:min(first+pipelined*size, len(claims))], size, lease)...)
	}
	return verdicts
}

// pipelined is how many renewal scripts travel together. Redis runs a few hundred
// between the commands of others within a few milliseconds.
const pipelined = 50

func (s *Store) renewPart(ctx context.Context, claims []Claim, size int, lease time.Duration) []Verdict {
	var cmds []*redis.Cmd
	for first := 0; first < len(claims); first += size {
		cmds = append(cmds, s.renewCommand(ctx, s.scripts.renew.digest, "evalsha", claims[first:min(first+size, len(claims))], lease))
	}
	node := s.execRenewals(ctx, cmds, claims[0].Key)
	verdicts := make([]Verdict, 0, len(claims))
	for i, cmd := range cmds {
		first := i * size
		verdicts = append(verdicts, s.readRenewal(ctx, node, cmd, claims[first:min(first+size, len(claims))], lease)...)
	}
	return verdicts
}

func (s *Store) renewCommand(ctx context.Context, body any, verb string, claims []Claim, lease time.Duration) *redis.Cmd {
	args := make([]any, 0, 4+2*len(claims))
	args = append(args, verb, body, len(claims))
	for _, c := range claims {
		args = append(args, c.Key)
	}
	args = append(args, lease.Milliseconds())
	for _, c := range claims {
		args = append(args, c.Field)
	}
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(keyPosition)
	cmd.SetStepCount(1) // else a ClusterClient asks any node, dead or not, for it
	return cmd
}

// execRenewals sends the commands in one pipeline to the node of key, which it
// returns; nil if there is none. The errors stay on the commands.
func (s *Store) execRenewals(ctx context.Context, cmds []*redis.Cmd, key string) *redis.Client {
	node := s.renewer
	if s.cluster != nil {
		master, err := s.cluster.MasterForKey(ctx, key)
		if err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return nil
		}
		node = master.WithTimeout(s.cfg.RenewTimeout)
	}
	pipe := node.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, once{cmd}) //nolint:errcheck // only queues; the error is on the command after Exec
	}
	_, _ = pipe.Exec(ctx) //nolint:errcheck // likewise
	if way, err := s.lanes.of(key); err == nil && fateOf(cmds[0].Err()) == Answered {
		way.health.answered()
	}
	return node
}

// readRenewal reads one reply. A script that the node does not know is sent to it
// once more, alone and in full; so is, wherever it leads, one whose slot has moved.
func (s *Store) readRenewal(ctx context.Context, node *redis.Client, cmd *redis.Cmd, claims []Claim, lease time.Duration) []Verdict {
	err := cmd.Err()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = s.renewCommand(ctx, s.scripts.renew.source, "eval", claims, lease)
		err = node.Process(ctx, once{cmd})
	}
	if s.moved(err) {
		cmd = s.renewCommand(ctx, s.scripts.renew.source, "eval", claims, lease)
		err = s.cluster.Process(ctx, once{cmd})
	}
	verdicts := make([]Verdict, len(claims))
	held, isArray := cmd.Val().([]any)
	if err == nil && (!isArray || len(held) != len(claims)) {
		err = unexpected("renew", cmd.Val())
	}
	for i := range verdicts {
		if err != nil {
			verdicts[i].Err = err
			continue
		}
		verdicts[i] = verdictOf(held[i])
	}
	return verdicts
}

// verdictOf reads what the script says of one lock. Where the key is no hash any more,
// nobody holds it.
func verdictOf(reply any) Verdict {
	switch v := reply.(type) {
	case int64:
		return Verdict{Held: v == 1}
	case string:
		if strings.HasPrefix(v, "WRONGTYPE") {
			return Verdict{}
		}
		return Verdict{Err: replyError(v)}
	default:
		return Verdict{Err: unexpected("renew", reply)}
	}
}

// replyError is an error that Redis has told inside of a reply. It is a [redis.Error].
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks it as a reply.
func (replyError) RedisError() {}

func (s *Store) moved(err error) bool {
	return s.redirected(err) || s.cluster != nil && (redis.IsTryAgainError(err) || redis.IsClusterDownError(err))
}
