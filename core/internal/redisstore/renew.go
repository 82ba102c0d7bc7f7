package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Verdict is what a renewal found out about one Claim.
type Verdict struct {
	Held bool
	Err  error // no answer, or an error reply; Held then means nothing
}

// MayLand reports whether the renewal may still be executed.
func (v Verdict) MayLand() bool { return v.Err != nil && fateOf(v.Err) == Unknown }

// renewChunk is how many locks one script renews outside a Cluster. Redisson's
// lockWatchdogBatchSize is the same.
const renewChunk = 100

// Renew raises the TTL of all claims to lease, or only looks when lease is 0. All
// claims are of one kind, and live on the node that was named by NodeName. It takes a connection of the
// caller's pool for itself and has its own time limit, so that it neither waits
// behind the pipelines nor delays them; a pool that is used up delays it.
// The verdicts are in the order of the claims.
func (s *Store) Renew(ctx context.Context, claims []Claim, lease time.Duration) []Verdict {
	size := renewChunk
	if s.apartKeys() {
		size = 1
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
	var cmds []*renewal
	for first := 0; first < len(claims); first += size {
		cmds = append(cmds, renewCommand(ctx, "evalsha", claims[first:min(first+size, len(claims))], lease))
	}
	by, err := s.renewerOf(claims[0].Key)
	if err == nil && lease > 0 {
		err = s.wish(ctx, &by, claims)
	}
	if err != nil {
		setErrors(cmds, err)
	} else {
		s.sendRenewals(ctx, by, cmds)
	}
	verdicts := make([]Verdict, 0, len(claims))
	for i, cmd := range cmds {
		first := i * size
		verdicts = append(verdicts, s.readRenewal(ctx, by, cmd, claims[first:min(first+size, len(claims))], lease)...)
	}
	return verdicts
}

// renewal is a command that renews. It is harmless when it is executed twice.
type renewal struct {
	*redis.Cmd
	renewer

	given []any // the arguments to send; hooks see a copy in Cmd, and may change it
}

// NoRetry opts out of every retry of go-redis: the next renewal is one.
func (*renewal) NoRetry() bool { return true }

// renewer is the way of renewals to a node.
type renewer struct {
	client *redis.Client
	node   hooks // of a node of a Cluster
	health *health
	acker  *acker           // nil: replicas need not have what is renewed
	ack    *acknowledgement // of what travels together; nil likewise
}

// wish has replicas acknowledge the renewal of claims, if the Store wants that.
func (s *Store) wish(ctx context.Context, by *renewer, claims []Claim) (err error) {
	if by.acker == nil {
		return nil
	}
	slots := []int{0}
	if s.cluster != nil {
		slots = make([]int, len(claims))
		for i, c := range claims {
			slots[i] = Slot(c.Key)
		}
	}
	by.ack, err = by.acker.prepare(ctx, time.Now().Add(s.cfg.RenewTimeout), slots...)
	return err
}

// transmit sends a pipeline of renewals that the hooks have seen.
func (r *renewal) transmit(ctx context.Context, cmds []redis.Cmder) error {
	scripts := make([]*answered, 0, len(cmds))
	for _, cmd := range cmds {
		if other, ours := cmd.(*renewal); ours {
			if !slices.Equal(other.Args(), other.given) {
				return errChanged
			}
			scripts = append(scripts, &answered{Cmd: other.Cmd})
		}
	}
	if r.ack == nil {
		return inPipeline(ctx, r.client, cmds)
	}
	r.ack.short = r.acker.send(ctx, r.client, scripts, r.ack)
	for _, script := range scripts {
		script.Cmd.SetErr(script.err)
	}
	return scripts[0].err
}

// renewerOf is that to the node of key. An error is that of a Cluster; see [nodes.of].
func (s *Store) renewerOf(key string) (renewer, error) {
	if s.cluster == nil {
		return renewer{client: s.renewer, health: s.routes.single.health, acker: s.routes.single.acker}, nil
	}
	n, err := s.routes.nodes.of(key)
	return renewer{client: n.renewer, node: n.hooks, health: n.health, acker: n.acker}, err
}

func renewCommand(ctx context.Context, verb string, claims []Claim, lease time.Duration) *renewal {
	sc := claims[0].Kind.renew.over(len(claims))
	body := sc.digest
	if verb == "eval" {
		body = sc.source
	}
	args := make([]any, 0, 4+2*len(claims))
	args = append(args, verb, body, len(claims))
	for _, c := range claims {
		args = append(args, c.Kind.leaseKey(c.Key))
	}
	args = append(args, lease.Milliseconds())
	for _, c := range claims {
		args = append(args, c.Kind.Holds.wire(c.Field))
	}
	return &renewal{Cmd: newCmd(ctx, args), given: slices.Clone(args)}
}

// sendRenewals sends commands in one pipeline, through the hooks of the caller's client.
// The errors are on the commands; one that a hook has returned is that of all.
func (s *Store) sendRenewals(ctx context.Context, by renewer, cmds []*renewal) {
	list := make([]redis.Cmder, len(cmds), len(cmds)+1)
	for i, cmd := range cmds {
		cmd.renewer, list[i] = by, cmd
	}
	if by.ack != nil {
		list = append(list, by.ack.waitCommand(ctx))
	}
	err := contained(func() error { return inPipeline(ctx, s.hooks, list) })
	if err != nil && !slices.ContainsFunc(cmds, func(cmd *renewal) bool { return cmd.Err() != nil }) {
		setErrors(cmds, err)
	}
	if fateOf(cmds[0].Err()) == Answered {
		by.health.answered()
	}
}

func setErrors(cmds []*renewal, err error) {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// readRenewal reads one reply. A script that the node does not know is sent to it
// once more, alone and in full; so is, wherever it leads, one whose slot has moved.
func (s *Store) readRenewal(ctx context.Context, by renewer, cmd *renewal, claims []Claim, lease time.Duration) []Verdict {
	err := cmd.Err()
	if meaningOf(err) == noScript {
		cmd = renewCommand(ctx, "eval", claims, lease)
		by.ack = by.ack.again()
		s.sendRenewals(ctx, by, []*renewal{cmd})
		err = cmd.Err()
	}
	if len(claims) > 1 && s.learn(err) {
		return s.Renew(ctx, claims, lease)
	}
	switch {
	case !s.moved(err):
	case by.ack != nil:
		cmd, by = s.renewElsewhere(ctx, by, cmd, claims, lease)
		err = cmd.Err()
	default:
		cmd = renewCommand(ctx, "eval", claims, lease)
		err = contained(func() error { return s.cluster.Process(ctx, once{cmd.Cmd}) })
	}
	verdicts := make([]Verdict, len(claims))
	held, isArray := cmd.Val().([]any)
	if err == nil && (!isArray || len(held) != len(claims)) {
		err = unexpected("renew", cmd.Val())
	}
	for i := range verdicts {
		if err != nil {
			verdicts[i].Err = s.advised(err)
			continue
		}
		verdicts[i] = verdictOf(held[i])
		if by.ack != nil && by.ack.short != nil && verdicts[i].Held {
			verdicts[i].Err = by.ack.short
		}
	}
	return verdicts
}

// renewElsewhere follows a redirection with what waits for the replicas there. Where it does
// not lead anywhere yet, the next renewal may.
func (s *Store) renewElsewhere(ctx context.Context, by renewer, cmd *renewal, claims []Claim, lease time.Duration) (*renewal, renewer) {
	s.routes.nodes.stale()
	to, ask := s.routes.nodes.target(cmd.Err())
	if to == nil {
		return cmd, by
	}
	by = renewer{client: to.renewer, node: to.hooks, health: to.health, acker: to.acker}
	cmd = renewCommand(ctx, "eval", claims, lease)
	if err := s.wish(ctx, &by, claims); err != nil {
		cmd.SetErr(err)
		return cmd, by
	}
	by.ack.asking = ask
	s.sendRenewals(ctx, by, []*renewal{cmd})
	return cmd, by
}

// verdictOf reads what the script says of one lock. Where the key is no hash any more,
// nobody holds it.
func verdictOf(reply any) Verdict {
	switch v := reply.(type) {
	case int64:
		return Verdict{Held: v == 1}
	case string:
		if err := errorReply(v); !WrongType(err) {
			return Verdict{Err: err}
		}
		return Verdict{}
	default:
		return Verdict{Err: unexpected("renew", reply)}
	}
}

func (s *Store) moved(err error) bool {
	return s.redirected(err) || s.cluster != nil && meaningOf(err) == inMotion
}
