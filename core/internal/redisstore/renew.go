package redisstore

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Verdict is the result of a renewal for one Claim.
type Verdict struct {
	Held  bool
	Err   error // there was no answer, or an error reply; Held is then meaningless
	Twice bool  // the renewal was sent twice, and one of the two commands was answered
}

// MayLand reports whether Redis may still execute the renewal.
func (v Verdict) MayLand() bool { return v.Twice || v.Err != nil && wire.FateOf(v.Err) == wire.Unknown }

const (
	// renewChunk is the number of locks that one script renews outside a Cluster, like
	// lockWatchdogBatchSize of Redisson.
	renewChunk = 100
	// renewTogether is the number of scripts with one key each that are sent together.
	// renewTogetherChunks is that number for scripts with renewChunk keys each. Redis runs them between
	// the commands of other clients within a few milliseconds.
	renewTogether       = 50
	renewTogetherChunks = 5
)

// Renew raises the TTL of all claims to lease. With a lease of 0 it only checks whether they are held.
// All claims have the same kind and node; see [Store.NodeName]. Renewals use the same connections as all
// other commands of locks, even while the node is silent. Config.RenewTimeout is their time limit. The
// verdicts are in the order of the claims.
func (s *Store) Renew(ctx context.Context, claims []Claim, lease time.Duration) []Verdict {
	size, together := renewChunk, renewTogetherChunks
	if s.oneLockPerScript() {
		size, together = 1, renewTogether
	}
	verdicts := make([]Verdict, 0, len(claims))
	for rest := claims; len(rest) > 0; {
		n := min(len(rest), size*together)
		verdicts = append(verdicts, s.renewTogether(ctx, rest[:n], size, lease)...)
		rest = rest[n:]
	}
	return verdicts
}

// renewTogether renews claims with scripts that are sent together.
func (s *Store) renewTogether(ctx context.Context, claims []Claim, size int, lease time.Duration) []Verdict {
	var calls []Call[[]Verdict]
	for first := 0; first < len(claims); first += size {
		calls = append(calls, s.renewal(claims[first:min(first+size, len(claims))], lease))
	}
	way := make([]*wire.Call, len(calls))
	for i := range calls {
		way[i] = &calls[i].Call
	}
	limit := time.Now().Add(s.cfg.RenewTimeout)
	s.wire.Together(ctx, limit, way)
	verdicts := make([]Verdict, 0, len(claims))
	for i := range calls {
		part := claims[i*size : min((i+1)*size, len(claims))]
		verdicts = append(verdicts, s.verdicts(ctx, limit, &calls[i], part, lease)...)
	}
	return verdicts
}

// renewal prepares the script for some claims.
func (s *Store) renewal(claims []Claim, lease time.Duration) Call[[]Verdict] {
	args := make([]any, 0, 2+2*len(claims))
	args = append(args, len(claims))
	for _, c := range claims {
		args = append(args, c.Kind.leaseKey(c.Key))
	}
	args = append(args, lease.Milliseconds())
	for _, c := range claims {
		args = append(args, c.Kind.holder(c.Key, c.Field))
	}
	call := newCall(s, s.call(time.Now(), claims[0].Kind.renew.over(len(claims)), claims[0].Key, args...), func(reply any) ([]Verdict, error) {
		held, isArray := reply.([]any)
		if !isArray || len(held) != len(claims) {
			return nil, unexpected("renew", reply)
		}
		verdicts := make([]Verdict, len(held))
		for i := range held {
			verdicts[i] = verdictOf(held[i])
		}
		return verdicts, nil
	})
	call.OnHang(wire.SendsAgain)
	if lease <= 0 {
		return call
	}
	return call.withAcks(func([]Verdict) bool { return true })
}

func (s *Store) verdicts(ctx context.Context, limit time.Time, call *Call[[]Verdict], claims []Claim, lease time.Duration) []Verdict {
	verdicts, _, err := call.Wait(ctx, limit)
	if len(claims) > 1 && s.oneLockPerScript() && wire.Apart(err) {
		return s.Renew(ctx, claims, lease)
	}
	if verdicts == nil {
		verdicts = make([]Verdict, len(claims))
	}
	for i := range verdicts {
		verdicts[i].Twice = call.Twice()
		if v := &verdicts[i]; err != nil && (v.Held || v.Err == nil && !wire.Short(err)) {
			v.Err = err
		}
	}
	return verdicts
}

// verdictOf reads the reply of the script for one lock. If the key is no longer a hash, the lock has no
// holder.
func verdictOf(reply any) Verdict {
	switch v := reply.(type) {
	case int64:
		return Verdict{Held: v == 1}
	case string:
		if err := wire.ReplyError(v); !wire.WrongType(err) {
			return Verdict{Err: err}
		}
		return Verdict{}
	default:
		return Verdict{Err: unexpected("renew", reply)}
	}
}
