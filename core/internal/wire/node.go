package wire

import (
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// node sends commands to one server.
type node struct {
	*origin

	lines *lines
	acker *acker                // nil: no acknowledgements are required
	hooks atomic.Pointer[hooks] // hooks of the client of a Cluster node; nil: none
}

// newNode returns a node for the server of an origin. opts are the options of the client of go-redis for that server.
func newNode(o *origin, opts *redis.Options, wants Replication, replicas *replicas) *node {
	n := &node{origin: o, lines: newLines(o, pipelineBound(opts.AutoPipelineOptions))}
	if wants.Acks != NoAcks {
		n.acker = newAcker(n.lines, wants, max(1, opts.PoolSize/2), replicas)
	}
	return n
}

// send passes commands to the lines, or to the acker if replicas have to acknowledge them.
func (n *node) send(cmds []*command) {
	if cmds[0].ack != nil {
		n.acker.submit(cmds)
		return
	}
	for _, c := range cmds {
		c.batched = len(cmds) > 1
		c.prepare(within(c.ctx.caller, c.limit))
		c.err = n.lines.submit(c)
	}
}

// clientHooks returns the hooks of the node's client.
func (n *node) clientHooks() hooks {
	if h := n.hooks.Load(); h != nil {
		return *h
	}
	return nil
}

// close closes all connections to the node.
func (n *node) close() {
	n.lines.close()
	if n.acker != nil {
		n.acker.life.close()
	}
	n.dialer.close()
}
