package wire

import (
	"context"
	"crypto/fips140"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"time"
)

// Call is one script on its way to Redis. Only one goroutine may use it. Call is a value, so that a call
// that is answered at once costs no allocation. A copy may continue the call.
type Call struct {
	// Sent is when the call was handed to this package, or a little before.
	Sent time.Time

	redis  *Redis
	at     time.Time // when this sending began
	script Script
	key    string
	cmd    *command
	node   *node
	err    error // the error of a finished call
	state  callState
	onHang OnHang
	twice  bool // the call was sent again because its connection hung
	last   bool // Wait does not send the call a second time
	urgent bool // the call is sent even to a silent node
	acked  bool // replicas have to acknowledge it
	moved  bool // the call follows a redirection
}

type callState uint8

const (
	prepared callState = iota
	queued             // sent, without an answer
	finished
)

// OnHang selects what Wait does when the connection of a call hangs and another connection is open.
type OnHang uint8

// The values of OnHang.
const (
	Returns    OnHang = iota // returns an error at once, and the caller prepares another call
	WaitsOn                  // continues to wait, because the script must not be executed twice
	SendsAgain               // sends the call once more, because the script may be executed twice
)

// OnHang sets the reaction of Wait when the connection hangs.
func (c *Call) OnHang(what OnHang) { c.onHang = what }

// Twice reports whether the call was sent again because its connection hung. Redis may execute the
// first sending later.
func (c *Call) Twice() bool { return c.twice }

// Call prepares a script. args are the arguments of EVALSHA after the digest: the number of keys, the
// keys, the rest. key is the first of the keys.
func (r *Redis) Call(now time.Time, script Script, key string, args ...any) Call {
	return Call{Sent: now, at: now, redis: r, script: script, key: key, cmd: newCommand("evalsha", script.Digest, args)}
}

// Acknowledge makes the call wait for acknowledgements of replicas, if the Config requires them.
func (c *Call) Acknowledge() { c.acked = c.redis.cfg.Replication.Acks != NoAcks }

// Shortfall returns the error of an answered call that lacks acknowledgements, nil if it lacks none.
func (c *Call) Shortfall() error {
	if c.cmd.ack == nil || c.cmd.ack.short == nil {
		return nil
	}
	return c.cmd.ack.short
}

// Settle makes Wait accept any answer, even NOSCRIPT. The caller only needs to know the fate of the
// call.
func (c *Call) Settle() { c.last = true }

// Wait sends the call and waits for the reply until ctx is done or limit passes. It sends the call again
// if Redis needs the whole script or redirects to another node. If the fate is Unknown, the call may
// still be on its way, and Wait may be called again.
func (c *Call) Wait(ctx context.Context, limit time.Time) (reply any, fate Fate, err error) {
	err = c.run(ctx, limit)
	for err != nil && c.follow(err) {
		err = c.run(ctx, limit)
	}
	if err == nil {
		return c.cmd.Cmd.Val(), Answered, nil
	}
	fate = FateOf(err)
	if c.node != nil && fate != Answered && !errors.Is(err, ErrSilent) {
		c.node.health.rouse()
	}
	if c.redis.redirects(err) {
		err = &redirectLoopError{err}
	}
	if fate != Answered && c.redis.cluster != nil {
		c.redis.cluster.reloadSlots() // another node may have taken over
	}
	if c.node != nil {
		err = c.node.health.explain(err)
	}
	return nil, fate, err
}

// Late returns the answer of a call that Wait gave up, if it arrived since. Otherwise the fate is
// Unknown.
func (c *Call) Late() (reply any, fate Fate, err error) {
	switch {
	case c.state != queued:
		return nil, FateOf(c.err), c.err
	case !c.cmd.over():
		return nil, Unknown, errPending
	}
	if err := c.cmd.takeAnswer(); err != nil {
		c.state, c.err = finished, err
		return nil, FateOf(err), err
	}
	return c.cmd.Cmd.Val(), Answered, nil
}

// run sends a call that was not sent and waits for the answer.
func (c *Call) run(ctx context.Context, limit time.Time) error {
	switch c.state {
	case finished:
		return c.err
	case queued:
		return c.cmd.await(ctx, limit)
	case prepared:
	}
	if err := c.prepare(ctx, limit, nil); err != nil {
		return err
	}
	return c.recordOutcome(c.cmd.through(c.redis.hooks))
}

// prepare finds the node of the key and fails if that node is silent. Calls that are sent together share
// ack. If ack is nil, the call gets its own.
func (c *Call) prepare(ctx context.Context, limit time.Time, ack *acknowledgement) (err error) {
	defer func() {
		if err != nil {
			err = markUnsent(err)
			c.state, c.err = finished, err
		}
	}()
	if !c.moved {
		if c.node, err = c.redis.node(c.key); err != nil {
			return err
		}
	}
	if err = c.node.health.err(); err != nil && !c.urgent {
		return err
	}
	cmd := c.cmd
	if cmd.ack = ack; c.acked && ack == nil {
		if cmd.ack, err = c.node.acker.prepare(ctx, limit, c.redis.slot(c.key)); err != nil {
			return err
		}
	}
	c.node.health.recordSending(c.at)
	cmd.to, cmd.health, cmd.at, cmd.ctx.caller, cmd.limit = c.node, c.node.health, c.at, ctx, limit
	return nil
}

// recordOutcome records the outcome of the sending.
func (c *Call) recordOutcome(err error) error {
	c.state, c.err = finished, err
	if c.cmd.pending() {
		c.state = queued
	}
	return err
}

// follow prepares another sending if the answer requires one, and reports whether to run the call
// again. After NOSCRIPT the command contains the whole script, which Redis then caches. A redirection
// of the Cluster is followed once. If the connection hangs, follow does what OnHang says.
func (c *Call) follow(err error) bool {
	if hangs(err) {
		if c.onHang == SendsAgain && !c.last {
			c.onHang, c.twice = WaitsOn, true
			c.prepareAgain(c.cmd.given[0].(string), c.cmd.given[1], c.cmd.asking) //nolint:errcheck,forcetypeassert // newCommand has it from a string
			return true
		}
		return c.onHang != Returns
	}
	if c.last || FateOf(err) != Answered {
		return false
	}
	if MeaningOf(err) == MeansNoScript && c.cmd.given[0] == "evalsha" {
		c.prepareAgain("eval", c.script.Source, c.cmd.asking)
		return true
	}
	if c.moved || !c.redis.redirects(err) {
		return false
	}
	to, ask := c.redis.cluster.redirectTarget(c.node, err)
	if to == nil {
		return false
	}
	c.moved, c.node = true, to
	c.prepareAgain("evalsha", c.script.Digest, ask)
	return true
}

// prepareAgain prepares the command once more.
func (c *Call) prepareAgain(verb string, body any, asking bool) {
	c.cmd, c.state, c.at = newCommand(verb, body, c.cmd.given[2:]), prepared, time.Now()
	c.cmd.asking = asking
}

// redirects reports whether the answer redirects to another node of the Cluster, which has the key or receives
// its slot.
func (r *Redis) redirects(err error) bool {
	return r.cluster != nil && MeaningOf(err) == MeansElsewhere
}

// Together sends calls to one node in one pipeline of the hooks and waits for their answers. After that,
// Wait of each call returns the answer of the call, and does what its OnHang says. Together sends the
// calls even while the node is silent.
func (r *Redis) Together(ctx context.Context, limit time.Time, calls []*Call) {
	var slots []int
	var acked bool
	for _, c := range calls {
		c.urgent = true
		slots, acked = append(slots, r.slot(c.key)), acked || c.acked
	}
	var ack *acknowledgement
	n, err := r.node(calls[0].key)
	if err == nil && acked {
		ack, err = n.acker.prepare(ctx, limit, slots...)
	}
	if err != nil {
		for _, c := range calls {
			c.node, c.state, c.err = n, finished, markUnsent(err)
		}
		return
	}
	var cmds []*command
	var sent []*Call
	for _, c := range calls {
		if c.prepare(ctx, limit, ack) == nil {
			cmds, sent = append(cmds, c.cmd), append(sent, c)
		}
	}
	if len(cmds) == 0 {
		return
	}
	for i, err := range throughAll(r.hooks, cmds) {
		if err = sent[i].recordOutcome(err); hangs(err) {
			sent[i].follow(err) // a later Wait does not return this error
		}
	}
}

// Script is a Lua script: its source and its digest, both ready to be sent.
type Script struct{ Source, Digest any }

// NewScript computes the digest under which Redis caches a script. Redis names scripts by their
// SHA-1. The digest protects nothing, so NewScript may compute it in a FIPS-only process.
func NewScript(source string) Script {
	var digest string
	fips140.WithoutEnforcement(func() {
		sum := sha1.Sum([]byte(source))
		digest = hex.EncodeToString(sum[:])
	})
	return Script{Source: source, Digest: digest}
}
