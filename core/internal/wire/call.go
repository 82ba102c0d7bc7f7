package wire

import (
	"context"
	"errors"
	"time"
)

// Call is one script on its way to Redis. It is for one goroutine. It is a value, so that one which is answered at
// once costs no allocation; a copy goes on in its place.
type Call struct {
	// Sent is when the call was handed to the wire, or a little before.
	Sent time.Time

	redis  *Redis
	at     time.Time // of this sending
	script Script
	key    string
	cmd    *command
	node   *node
	err    error // of a finished call
	state  callState
	onHang OnHang
	twice  bool // it was sent again where its connection hung
	last   bool // it is not sent a second time
	urgent bool // it is sent to a silent node as well
	acked  bool // replicas have to acknowledge it
	moved  bool // it follows a redirection
}

type callState uint8

const (
	prepared callState = iota
	queued             // on its way
	finished
)

// OnHang is what Wait does when the connection of a call hangs, and there is another one.
type OnHang uint8

// Each is for calls of another kind.
const (
	Returns    OnHang = iota // it returns an error at once: the caller has another call to send
	WaitsOn                  // the script must not be executed twice
	SendsAgain               // once more, that is: it does no harm if the script is executed twice
)

// OnHang says what Wait does when the connection hangs.
func (c *Call) OnHang(what OnHang) { c.onHang = what }

// Twice reports whether the call was sent again where its connection hung: the first sending may land later.
func (c *Call) Twice() bool { return c.twice }

// Call prepares a script. args are what EVALSHA wants behind the digest: the number of keys, the keys, the
// arguments. key is the first of the keys.
func (r *Redis) Call(now time.Time, script Script, key string, args ...any) Call {
	return Call{Sent: now, at: now, redis: r, script: script, key: key, cmd: newCommand("evalsha", script.Digest, args)}
}

// Acknowledge has the replicas acknowledge the call, if the Config says so.
func (c *Call) Acknowledge() { c.acked = c.redis.cfg.Replication.Acks != NoAcks }

// Shortfall returns what is missing of the acknowledgements of an answered call; nil: nothing.
func (c *Call) Shortfall() error {
	if c.cmd.ack == nil || c.cmd.ack.short == nil {
		return nil
	}
	return c.cmd.ack.short
}

// Settle makes Wait take an answer as it is, also that the script is not known: the caller does not want the call
// executed any more.
func (c *Call) Settle() { c.last = true }

// Wait sends the call, again where Redis wants the whole script or knows another node, and waits for the reply until
// ctx or limit ends. With the fate Unknown the call may still be on its way; then Wait may be called again.
func (c *Call) Wait(ctx context.Context, limit time.Time) (reply any, fate Fate, err error) {
	err = c.run(ctx, limit)
	for err != nil && c.follows(err) {
		err = c.run(ctx, limit)
	}
	if err == nil {
		return c.cmd.Cmd.Val(), Answered, nil
	}
	fate = FateOf(err)
	c.judge(fate, err)
	if c.redis.away(err) {
		err = &redirectLoopError{err}
	}
	if fate != Answered && c.redis.cluster != nil {
		c.redis.cluster.stale() // another node may have taken over
	}
	if c.node != nil {
		err = c.node.health.explain(err)
	}
	return nil, fate, err
}

// Late returns the answer of a call that Wait has given up, if it has come. Otherwise its fate is Unknown.
func (c *Call) Late() (reply any, fate Fate, err error) {
	switch {
	case c.state != queued:
		return nil, FateOf(c.err), c.err
	case !c.cmd.over():
		return nil, Unknown, errPending
	}
	if err := c.cmd.settled(); err != nil {
		c.state, c.err = finished, err
		return nil, FateOf(err), err
	}
	return c.cmd.Cmd.Val(), Answered, nil
}

// run sends a call that was not sent, and waits for the answer.
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
	return c.sent(c.cmd.through(c.redis.hooks))
}

// prepare finds the node of the key, unless that is silent. ack is the wish of calls that travel together; nil:
// the call has its own.
func (c *Call) prepare(ctx context.Context, limit time.Time, ack *acknowledgement) (err error) {
	defer func() {
		if err != nil {
			err = unsent(err)
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
	c.node.health.sent(c.at)
	cmd.to, cmd.health, cmd.at, cmd.ctx.caller, cmd.limit = c.node, c.node.health, c.at, ctx, limit
	return nil
}

// sent notes what became of the command.
func (c *Call) sent(err error) error {
	c.state, c.err = finished, err
	if c.cmd.pending() {
		c.state = queued
	}
	return err
}

// follows prepares the call for what an answer asks for: the whole script, which Redis keeps from then on, or
// another node of the Cluster. A redirection is followed once. Without an answer it does what OnHang says.
func (c *Call) follows(err error) bool {
	if hangs(err) {
		if c.onHang == SendsAgain && !c.last {
			c.onHang, c.twice = WaitsOn, true
			c.again(c.cmd.given[0].(string), c.cmd.given[1], c.cmd.asking) //nolint:errcheck,forcetypeassert // newCommand has it from a string
			return true
		}
		return c.onHang != Returns
	}
	if c.last || FateOf(err) != Answered {
		return false
	}
	if MeaningOf(err) == MeansNoScript && c.cmd.given[0] == "evalsha" {
		c.again("eval", c.script.Source, c.cmd.asking)
		return true
	}
	if c.moved || !c.redis.away(err) {
		return false
	}
	to, ask := c.redis.cluster.redirected(c.node, err)
	if to == nil {
		return false
	}
	c.moved, c.node = true, to
	c.again("evalsha", c.script.Digest, ask)
	return true
}

// again prepares the command once more.
func (c *Call) again(verb string, body any, asking bool) {
	c.cmd, c.state, c.at = newCommand(verb, body, c.cmd.given[2:]), prepared, time.Now()
	c.cmd.asking = asking
}

// away reports whether the answer is that another node of the Cluster has the key, now or while its slot is
// on the move.
func (r *Redis) away(err error) bool { return r.cluster != nil && MeaningOf(err) == MeansElsewhere }

// judge takes from the end of a call what it says about its node.
func (c *Call) judge(fate Fate, err error) {
	switch {
	case c.node == nil, fate == Answered:
	case !errors.Is(err, ErrSilent):
		c.node.health.rouse()
	}
}

// Together sends calls to one node in one pipeline of the hooks, and waits for their answers; Wait of each one
// returns them. The calls are made also while the node is silent. Wait does what OnHang says of each one.
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
			c.node, c.state, c.err = n, finished, unsent(err)
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
		if err = sent[i].sent(err); hangs(err) {
			sent[i].follows(err) // no later wait has this error
		}
	}
}
